"""Guards inside guards that could not be merged."""

from __future__ import annotations

import time
from typing import Any

import pytest

from resilience_mw import remaining
from resilience_mw.core import AIMD, AdaptiveGate, DeadlinePolicy, Gate
from resilience_mw.core.exchange import KEY
from resilience_mw.wsgi import Guard

from .harness import Response, aside, call, environ, hello


class Watching(AdaptiveGate):
    """An adaptive gate that says how many samples it has taken."""

    def __init__(self) -> None:
        super().__init__(AIMD())

    @property
    def samples(self) -> int:
        """Samples of the window that is open."""
        return len(self._latencies)


@pytest.mark.parametrize(
    "inner",
    [lambda: Gate(0), lambda: AdaptiveGate(AIMD(initial_limit=1, max_limit=1), max_queue=0)],
    ids=["fixed", "adaptive"],
)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_refusal_further_in_is_no_sample_for_any_gate_further_out(inner, depth):
    """However many guards are in between: it was quick because nothing was done."""
    gate = inner()
    gate.inflight = 1
    stack = Guard(hello, gate)
    outer = [Watching() for _ in range(depth)]
    for watching in outer:
        stack = Guard(aside(stack), watching)
    for _ in range(3):
        assert call(stack)[0] == 503
    assert [watching.samples for watching in outer] == [0] * depth
    assert [watching.inflight for watching in outer] == [0] * depth
    gate.inflight = 0
    if gate.limit:
        assert call(stack)[0] == 200
        assert [watching.samples for watching in outer] == [1] * depth


def test_the_outer_deadline_is_known_further_in_and_afterwards():
    """remaining() sees the nearest around it, also when the inner guard has ended."""
    seen: dict[str, Any] = {}

    def app(environ, start_response):
        seen["app"] = remaining()
        return hello(environ, start_response)

    inner = Guard(app, DeadlinePolicy(50.0))

    def between(environ, start_response):
        seen["before"] = remaining()
        body = inner(environ, start_response)
        chunks = list(body)
        getattr(body, "close", bool)()
        seen["after"] = remaining()
        return chunks

    assert call(Guard(between, DeadlinePolicy(10.0))) == (200, b"ok")
    assert 10.0 >= seen["before"] >= seen["app"] >= seen["after"] > 0.0


def test_a_second_guard_further_in_is_nested_like_the_first():
    """A cascade tries one app after the other."""
    seen: list[Any] = []

    def app(environ, start_response):
        seen.append(remaining())
        return hello(environ, start_response)

    inner = [Guard(app, DeadlinePolicy(50.0)) for _ in range(2)]

    def cascade(environ, start_response):
        for guard in inner:
            list(body := guard(environ, start_response))
            getattr(body, "close", bool)()
        return []

    call(Guard(cascade, DeadlinePolicy(10.0)))
    assert all(0.0 < left <= 10.0 for left in seen)


def test_a_guard_further_in_may_outlive_the_one_further_out():
    """A middleware may keep the body for later: each gives back what it took."""
    bodies: list[Any] = []
    inner_gate, outer_gate = Watching(), Watching()
    inner = Guard(hello, DeadlinePolicy(10.0), inner_gate)

    def early(environ, start_response):
        bodies.append(inner(environ, start_response))
        return []

    facts = environ()
    outer = Guard(early, DeadlinePolicy(10.0), outer_gate)
    body = outer(facts, Response().start)
    getattr(body, "close", bool)()
    assert (inner_gate.inflight, outer_gate.inflight) == (1, 0)
    bodies.pop().close()
    assert (inner_gate.inflight, outer_gate.inflight) == (0, 0)
    assert KEY not in facts


def test_a_call_to_another_app_from_inside_is_another_request():
    """What that refuses is not this one's refusal."""
    gate = Watching()
    other = Guard(hello, Gate(0))

    def app(environ, start_response):
        assert call(other)[0] == 503
        return hello(environ, start_response)

    assert call(Guard(app, gate)) == (200, b"ok")
    assert gate.samples == 1


def test_the_exchange_can_be_found_while_the_request_runs():
    """For guards further in, and for whoever is curious."""
    seen: list[Any] = []

    def app(environ, start_response):
        seen.append(environ[KEY].deadline)
        return hello(environ, start_response)

    call(Guard(app, DeadlinePolicy(10.0)))
    assert seen[0] > time.monotonic()
