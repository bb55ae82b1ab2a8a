"""Guards directly inside one another become one; the same policies act in the same order."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resilience_mw import ConfigError
from resilience_mw.asgi import (
    BackpressureMiddleware,
    ConcurrencyLimitMiddleware,
    DeadlineMiddleware,
    Guard,
    HealthMiddleware,
)
from resilience_mw.core import Gate
from resilience_mw.wsgi import Guard as WSGIGuard
from tests.core.steps import Fork, Refuse, Step, expected

from .harness import Exchange, aside, call, hello, run

DOES = st.sampled_from(["pass", "pass", "skip", "stop", "raise", "fail late"])


def test_adjacent_guards_merge():
    """Outermost first, around the app itself."""
    inner, middle, outer = Gate(1), Gate(2), Gate(3)
    guard = Guard(Guard(Guard(hello, inner), middle), outer)
    assert guard.app is hello
    assert guard.policies == (outer, middle, inner)


def test_the_named_middlewares_merge():
    """Five of them cost what one guard costs."""
    guard = HealthMiddleware(
        DeadlineMiddleware(
            ConcurrencyLimitMiddleware(BackpressureMiddleware(hello), max_concurrent_requests=5)
        )
    )
    assert guard.app is hello
    assert [type(policy).__name__ for policy in guard.policies] == [
        "HealthPolicy",
        "DeadlinePolicy",
        "Gate",
        "AdaptiveGate",
    ]


def test_what_stands_between_two_guards_keeps_them_apart():
    """A middleware in the middle must see what it would see."""
    inner = Guard(hello, Gate(1))
    between = aside(inner)
    guard = Guard(between, Gate(1))
    assert guard.app is between


def test_a_rerouting_policy_is_not_merged_past():
    """Only the inner guard of the app that was chosen may count the request."""
    inner_gate, outer_gate = Gate(1, name="inner"), Gate(5, name="outer")
    inner = Guard(hello, inner_gate)
    fork = Guard(inner, Fork(hello))
    guard = Guard(fork, outer_gate)
    assert fork.app is inner
    assert guard.app is inner
    assert [type(policy).__name__ for policy in guard.policies] == ["Gate", "Fork"]
    assert run(call(guard)).status == 200
    assert (outer_gate.admitted, inner_gate.admitted) == (1, 0)


def test_a_rerouted_request_goes_to_its_target():
    """And one that was not, to the guarded app."""

    async def other(scope, receive, send):
        await send({"type": "http.response.start", "status": 202, "headers": []})
        await send({"type": "http.response.body"})

    assert run(call(Guard(hello, Fork(other)))).status == 202
    assert run(call(Guard(hello, Fork(None)))).status == 200


def test_a_policy_cannot_be_in_a_merged_row_twice():
    """It would be left twice for each time it was entered."""
    gate = Gate(1)
    with pytest.raises(ConfigError, match="must be distinct"):
        Guard(Guard(hello, gate), gate)


def test_a_policy_of_another_kind_of_driver_is_refused():
    """A gate without a lock is not for threads."""
    gate = Gate(1)
    Guard(hello, gate)
    with pytest.raises(ConfigError, match="one kind of driver"):
        WSGIGuard(lambda environ, start_response: [], gate)


def test_guards_may_share_a_policy():
    """One limit over two apps."""
    gate = Gate(1)
    guards = [Guard(hello, gate), Guard(hello, Gate(5), gate)]
    gate.inflight = 1
    assert [run(call(guard)).status for guard in guards] == [503, 503]
    gate.inflight = 0
    assert [run(call(guard)).status for guard in guards] == [200, 200]


@settings(max_examples=60)
@given(behaviours=st.lists(DOES, min_size=1, max_size=6), data=st.data())
def test_any_stack_gives_the_trace_of_one_row(behaviours: list[str], data: st.DataObject):
    """However the policies are spread over guards, merged or not: left in reverse, once each."""
    trace: list[tuple[str, str]] = []

    async def app(scope, receive, send):
        trace.append(("app", ""))
        await hello(scope, receive, send)

    stack = app
    steps = [Step(trace, str(name), does) for name, does in enumerate(behaviours)]
    left = list(steps)
    while left:
        size = data.draw(st.integers(1, len(left)), "policies in this guard")
        row, left = left[-size:], left[:-size]
        if isinstance(stack, Guard) and data.draw(st.booleans(), "something in between"):
            stack = aside(stack)
        stack = Guard(stack, *row)

    async def main() -> Exchange:
        exchange = Exchange()
        try:
            return await exchange.through(stack)
        except Refuse:
            return exchange

    exchange = run(main())
    assert trace == expected(behaviours)
    reached = behaviours[: sum(event == "enter" for event, _ in trace)]
    if not (reached[-1] == "stop" and "fail late" in reached):  # that may cost the answer
        assert exchange.status == {"stop": 418, "raise": None}.get(reached[-1], 200)
    for step in steps:
        if step.times:
            arrived, ended = step.times
            assert ended >= arrived > 0.0
