"""Guards directly inside one another become one; the same policies act in the same order."""

from __future__ import annotations

import logging
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resilience_mw import ConfigError
from resilience_mw.asgi import Guard as ASGIGuard
from resilience_mw.core import Gate
from resilience_mw.wsgi import (
    BackpressureMiddleware,
    ConcurrencyLimitMiddleware,
    DeadlineMiddleware,
    Guard,
    HealthMiddleware,
)
from tests.core.steps import Fork, Refuse, Step, expected

from .harness import PATIENCE, Response, aside, begin, call, environ, hello, until

DOES = st.sampled_from(["pass", "pass", "skip", "stop", "raise", "fail late"])


@settings(max_examples=150)
@given(behaviours=st.lists(DOES, min_size=1, max_size=6), data=st.data())
def test_any_stack_gives_the_trace_of_one_row(behaviours: list[str], data: st.DataObject):
    """However the policies are spread over guards, merged or not: left in reverse, once each."""
    logging.disable(logging.ERROR)
    trace: list[tuple[str, str]] = []

    def app(environ, start_response):
        trace.append(("app", ""))
        return hello(environ, start_response)

    stack = app
    steps = [Step(trace, str(name), does) for name, does in enumerate(behaviours)]
    left = list(steps)
    while left:
        size = data.draw(st.integers(1, len(left)), "policies in this guard")
        row, left = left[-size:], left[:-size]
        if isinstance(stack, Guard) and data.draw(st.booleans(), "something in between"):
            stack = aside(stack)
        stack = Guard(stack, *row)
    response = Response()
    try:
        response.body = stack(environ(), response.start)
        response.read()
    except Refuse:
        response.body = None
    finally:
        logging.disable(logging.NOTSET)
    assert trace == expected(behaviours)
    reached = behaviours[: sum(event == "enter" for event, _ in trace)]
    assert response.status == {"stop": 418, "raise": 0}.get(reached[-1], 200)
    for step in steps:
        if step.times:
            arrived, ended = step.times
            assert ended >= arrived > 0.0


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


def test_a_rerouting_policy_is_not_merged_past():
    """Only the inner guard of the app that was chosen may count the request."""

    def other(environ, start_response):
        start_response("202 Accepted", [])
        return []

    inner_gate, outer_gate = Gate(1), Gate(5)
    inner = Guard(hello, inner_gate)
    guard = Guard(Guard(inner, Fork(other)), outer_gate)
    assert guard.app is inner
    assert call(guard) == (202, b"")
    assert (outer_gate.admitted, inner_gate.admitted) == (1, 0)
    assert call(Guard(inner, Fork(None))) == (200, b"ok")
    assert inner_gate.admitted == 1


def test_a_policy_of_another_kind_of_driver_is_refused():
    """A gate that is not locked is not for threads."""

    async def app(scope, receive, send): ...

    gate = Gate(1)
    ASGIGuard(app, gate)
    with pytest.raises(ConfigError, match="one kind of driver"):
        Guard(hello, gate)


def test_guards_may_share_a_policy():
    """One limit over several apps; their requests may wait for each other."""
    gate = Gate(1, max_queue=1, max_wait=PATIENCE)
    first, second = Guard(hello, gate), Guard(hello, gate)
    holder = begin(first)
    answers = []
    waiter = threading.Thread(target=lambda: answers.append(call(second)))
    waiter.start()
    until(lambda: second.snapshot().queued == 1)
    holder.read()
    waiter.join(PATIENCE)
    assert answers == [(200, b"ok")]
    assert gate.inflight == 0
