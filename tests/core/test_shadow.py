"""A gate that is only tried out: nothing is refused, and the counts are those of a real one."""

from __future__ import annotations

import gc
import heapq
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resilience_mw.core import AIMD, SKIP, AdaptiveGate, Gate, GateSnapshot, Policy, Senses
from resilience_mw.core.policy import answers_ahead
from resilience_mw.core.priority import PriorityGate
from resilience_mw.core.ranking import CLASSES, Ranking
from resilience_mw.core.shadow import Shadow
from resilience_mw.core.ticket import Ticket

from .requests import Request

Traffic = list[tuple[float, float]]
"""When each request arrives, and how long it takes, in seconds."""


class Replay:
    """Sends scripted traffic through a policy, as a driver does; what is admitted takes its time.

    Args:
        policy: decides.
        deadline: seconds after which a request that waits is too late; ``None`` = never.
    """

    def __init__(self, policy: Policy, deadline: float | None = None) -> None:
        self.policy = policy
        self.deadline = deadline
        self.now = 0.0
        self.refused = self.waited = 0
        self._events: list[tuple[float, int, Callable[[float], None]]] = []
        self._number = 0

    def run(self, traffic: Iterable[tuple[float, float]]) -> GateSnapshot:
        """Run it all, tick until long after, and return the snapshot."""
        last = 0.0
        for number, (arrives, takes) in enumerate(traffic):
            # No two things happen at the same moment: their order would be anybody's guess.
            arrives, takes = arrives + number * 1.618e-6, takes + number * 1.414e-7
            self.at(arrives, self._arrival(number, takes))
            last = max(last, arrives + takes)
        for tick in range(int(10 * last) + 130):
            self.at(0.0125 + tick / 10, self.policy.tick)
        while self._events:
            self.now, _, call = heapq.heappop(self._events)
            call(self.now)
        snapshot = self.policy.snapshot()
        assert isinstance(snapshot, GateSnapshot)
        return snapshot

    def at(self, when: float, call: Callable[[float], None]) -> None:
        """Do something then."""
        self._number += 1
        heapq.heappush(self._events, (when, self._number, call))

    def _arrival(self, number: int, takes: float) -> Callable[[float], None]:
        def enter(now: float) -> None:
            request = Request(now, path=f"/{number}")
            if self.deadline is not None:
                request.deadline = now + self.deadline
            decision = self.policy.enter(request)
            if decision is None:
                self._serve(request, takes)
            elif isinstance(decision, Ticket):
                self.waited += 1
                self._wait(request, decision, takes)
            else:
                self.refused += 1

        return enter

    def _serve(self, request: Request, takes: float) -> None:
        def end(now: float) -> None:
            request.status, request.answered_at = 200, now
            assert self.policy.exit is not None
            self.policy.exit(request, now)

        self.at(self.now + takes, end)

    def _wait(self, request: Request, ticket: Ticket, takes: float) -> None:
        def woken() -> None:
            if ticket.granted:
                request.admitted = self.now
                self._serve(request, takes)
            else:
                self.refused += 1

        ticket.wake = woken
        until = ticket.expires if self.deadline is None else request.deadline or 0.0
        until = min(ticket.expires, until)
        self.at(until, lambda now: self.policy.expire(ticket, until))


class Law(AIMD):
    """A law whose samples end with the response."""

    observes = True


def adaptive(**options: Any) -> AdaptiveGate:
    """Return an adaptive gate on a server that is as busy as its requests number says."""
    gate = AdaptiveGate(_law(), **options)
    gate.listen(_sense)
    return gate


def ranked(**options: Any) -> PriorityGate:
    """Return one with ranks by number."""
    gate = PriorityGate(
        _law(), Ranking(lambda request: CLASSES[int(request.path[1:]) % 3]), **options
    )
    gate.listen(_sense)
    return gate


def _law() -> Law:
    return Law(initial_limit=4, min_limit=1, max_limit=6, window=0.2, queue_timeout=0.7)


def _sense(now: float) -> Senses:
    # Busy and idle in turns of a second, whatever the traffic.
    seconds = int(now)
    return Senses(now, (seconds + 1) // 2 + (now - seconds) * (seconds % 2 == 0), int(100 * now))


GATES: dict[str, Callable[[], Gate]] = {
    "limit": lambda: Gate(2),
    "queue": lambda: Gate(2, max_queue=3, max_wait=0.5),
    "long queue": lambda: Gate(1, max_queue=1000, max_wait=8.0),
    "no wait": lambda: Gate(1, max_queue=2, max_wait=0.0),
    "adaptive": lambda: adaptive(max_queue=4),
    "ranked": lambda: ranked(max_queue=4),
}

traffics = st.lists(
    st.tuples(st.floats(0.0, 5.0), st.floats(0.0, 2.0)), max_size=60
)  # up to a dozen at once


def compare(make: Callable[[], Gate], traffic: Traffic, deadline: float | None = None) -> Replay:
    """Run the same traffic through a real gate and a shadow; all that they count must agree."""
    real, shadow = Replay(make(), deadline), Replay(Shadow(make()), deadline)
    truth, told = real.run(traffic), shadow.run(traffic)
    assert told.dry_run
    assert not truth.dry_run
    for field in ("name", "limit", "inflight", "queued", "admitted", "refused", "law", "cutoff"):
        assert getattr(told, field) == getattr(truth, field), field
    smoothed = truth.smoothed_latency or 0.0
    assert (told.smoothed_latency or 0.0) == pytest.approx(smoothed, rel=1e-6)
    assert sum(told.refused.values()) == real.refused
    assert (shadow.refused, shadow.waited) == (0, 0)
    assert (told.inflight, told.queued) == (0, 0)
    check_nothing_is_left(shadow.policy)
    return real


def check_nothing_is_left(shadow: Policy) -> None:
    """After all has ended, the shadow holds no request."""
    assert isinstance(shadow, Shadow)
    assert (shadow._beside, shadow._late, shadow._due, shadow._running) == ({}, {}, [], 0)
    assert (shadow.gate.inflight, shadow.gate.queued) == (0, 0)


@pytest.mark.parametrize("gate", GATES)
def test_below_the_limit_it_counts_what_a_real_gate_counts(gate: str):
    """One request after the other: all are admitted."""
    real = compare(GATES[gate], [(number / 5, 0.15) for number in range(50)])
    assert (real.refused, real.waited) == (0, 0)


@pytest.mark.parametrize("gate", GATES)
def test_above_the_limit_it_counts_what_a_real_gate_counts(gate: str):
    """Refusals, waits and waits that end in vain, by reason, exactly."""
    traffic = [(number / 20, 0.3 + number % 7 / 10) for number in range(200)]
    real = compare(GATES[gate], traffic)
    assert real.refused > 50 or gate == "long queue"
    assert real.waited > 20 or gate == "limit"


@pytest.mark.parametrize("gate", GATES)
def test_deadlines_end_waits_as_they_do_in_a_real_gate(gate: str):
    """The reason is then the deadline."""
    traffic = [(number / 20, 0.3 + number % 7 / 10) for number in range(200)]
    real = compare(GATES[gate], traffic, deadline=0.2)
    assert isinstance(real.policy, Gate)
    assert real.policy.refused.get("deadline", 0) > 0 or gate in ("limit", "no wait")


@given(traffics, st.sampled_from(sorted(GATES)), st.none() | st.floats(0.01, 1.0))
def test_any_traffic_is_counted_as_by_a_real_gate(
    traffic: Traffic, gate: str, deadline: float | None
):
    """Whatever arrives when, and however long it takes."""
    compare(GATES[gate], traffic, deadline)


moves = st.lists(
    st.one_of(
        st.tuples(st.just("enter"), st.none() | st.floats(0.0, 1.0)),
        st.tuples(st.just("exit"), st.integers(0, 20), st.sampled_from([0, 200, 500])),
        st.tuples(st.sampled_from(["tick", "pass"]), st.floats(0.0, 1.0)),
        st.tuples(st.just("stream"), st.integers(0, 20)),
        st.tuples(st.just("drain")),
    ),
    max_size=80,
)


@given(moves, st.sampled_from(sorted(GATES)))
def test_nothing_is_refused_lost_or_raised_whatever_happens(
    script: list[tuple[Any, ...]], gate: str
):
    """Clients that leave, streams, drains and deadlines, in any order."""
    shadow = Shadow(GATES[gate]())
    running: list[Request] = []
    now = entered = 0.0
    for move in script:
        now += 0.001
        match move:
            case ("enter", deadline):
                request = Request(now, path=f"/{len(running)}")
                request.deadline = None if deadline is None else now + deadline
                assert shadow.enter(request) is None
                running.append(request)
                entered += 1
            case ("exit", number, status) if running:
                request = running.pop(number % len(running))
                request.status, request.answered_at = status, now if status else 0.0
                shadow.exit(request, now)
            case ("tick", seconds):
                now += seconds
                shadow.tick(now)
            case ("pass", seconds):
                now += seconds
            case ("stream", number) if running and isinstance(shadow.gate, AdaptiveGate):
                request = running[number % len(running)]
                request.status, request.answered_at = 200, now
                shadow.gate.stream(request)
            case ("drain",):
                shadow.drain()
        state = shadow.gate.snapshot()
        assert state.inflight >= 0
        assert shadow._running == len(running)
        assert set(shadow._beside) | set(shadow._late) <= set(running)
    for request in running:
        now += 0.001
        shadow.exit(request, now)
    shadow.tick(now + 100.0)
    shadow.tick(now + 200.0)
    check_nothing_is_left(shadow)
    end = shadow.gate.snapshot()
    assert end.streams == 0
    assert end.admitted + sum(end.refused.values()) <= entered


def test_it_shows_itself_in_the_snapshot():
    """What is counted as refused was not."""
    shadow = Shadow(Gate(1, name="backpressure"))
    for _ in range(3):
        assert shadow.enter(Request()) is None
    snapshot = shadow.snapshot()
    assert snapshot == GateSnapshot(
        name="backpressure",
        limit=1,
        inflight=1,
        queued=0,
        admitted=1,
        refused={"limit": 2},
        dry_run=True,
    )


def test_a_server_at_rest_holds_nothing():
    """A slot that would still be held shows while requests run, and is given back in time."""
    shadow = Shadow(Gate(1, max_queue=5, max_wait=9.0))
    requests = [Request(100.0), Request(100.1)]
    for request in requests:
        shadow.enter(request)
    for request in requests:
        shadow.exit(request, 101.0)
    assert shadow.gate.inflight == 1
    assert shadow.snapshot().inflight == 0
    other = Request(101.5)
    shadow.enter(other)
    assert (shadow.snapshot().inflight, shadow.snapshot().queued) == (1, 1)
    shadow.tick(101.95)
    assert (shadow.snapshot().inflight, shadow.snapshot().queued) == (1, 0)


def test_a_client_that_leaves_leaves_the_queue():
    """Without an answer it would have been dropped there, and counted as nothing."""
    gate = adaptive(max_queue=5)
    gate.limit = 1
    shadow = Shadow(gate)
    first, second = Request(100.0), Request(100.0)
    shadow.enter(first)
    shadow.enter(second)
    assert shadow.snapshot().queued == 1
    shadow.exit(second, 100.3)
    assert shadow.snapshot().queued == 0
    first.status, first.answered_at = 200, 100.4
    shadow.exit(first, 100.4)
    shadow.tick(110.0)
    assert (gate.admitted, gate.refused) == (1, {})


def test_exempt_requests_are_none_of_its_business():
    """As they are none of the gate's."""
    shadow = Shadow(Gate(1, exempt=("/static/",)))
    assert shadow.enter(Request(path="/static/x")) is SKIP
    assert shadow.snapshot().admitted == 0
    check_nothing_is_left(shadow)


def test_streams_count_only_where_the_gate_has_let_them_in():
    """Who would have been refused holds no slot, so the limit is not raised for it."""
    gate = adaptive(max_queue=0)
    gate.limit = gate.law.limit = 1
    shadow = Shadow(gate)
    requests = [Request(100.0 + number / 10) for number in range(3)]
    for request in requests:
        shadow.enter(request)
        request.status, request.answered_at = 200, 101.0
    for request in requests:
        gate.stream(request)
    assert (gate.snapshot().streams, gate.limit) == (1, 2)
    for request in requests:
        shadow.exit(request, 102.0)
    assert gate.snapshot().streams == 0
    check_nothing_is_left(shadow)


def test_a_late_grant_makes_a_stream_one_of_the_gates():
    """From then on it holds a slot like any other."""
    gate = adaptive(max_queue=1)
    gate.limit = 1
    gate.law.limit = 1
    shadow = Shadow(gate)
    first, second = Request(100.0), Request(100.1)
    shadow.enter(first)
    shadow.enter(second)
    first.status = second.status = 200
    first.answered_at = second.answered_at = 100.2
    shadow.exit(first, 100.3)
    gate.stream(second)
    assert gate.snapshot().streams == 1
    shadow.exit(second, 105.0)
    assert gate.snapshot().streams == 1  # it would have run for as long after it was granted
    shadow.tick(106.0)
    assert gate.snapshot().streams == 0
    check_nothing_is_left(shadow)


def test_draining_is_counted_as_by_a_real_gate():
    """Whoever waits would be refused, and whoever comes to a full gate."""
    shadow = Shadow(Gate(1, max_queue=5, max_wait=9.0))
    for _ in range(3):
        shadow.enter(Request())
    shadow.drain()
    shadow.enter(Request())
    assert shadow.snapshot().refused == {"draining": 3}


def test_a_request_that_waited_further_out_begins_anew():
    """Its time in the queue of another gate is none in this one's."""
    shadow = Shadow(Gate(1, max_queue=5, max_wait=1.0))
    shadow.enter(Request(100.0))
    request = Request(100.0)
    request.admitted = 105.0
    shadow.enter(request)
    shadow.tick(105.9)
    assert shadow.snapshot().refused == {}
    shadow.tick(106.1)
    assert shadow.snapshot().refused == {"queue_timeout": 1}


def test_it_holds_no_request_longer_than_needed():
    """Once it is over, the request is garbage, even if its ticket had long to wait."""
    shadow = Shadow(Gate(1, max_queue=5, max_wait=1000.0))
    first, second = Request(100.0), Request(100.1)
    gone = weakref.ref(second)
    shadow.enter(first)
    shadow.enter(second)
    shadow.exit(first, 100.2)
    shadow.exit(second, 100.3)
    shadow.tick(101.0)
    del second
    gc.collect()
    assert gone() is None


def test_it_answers_nothing_ahead():
    """A refusal before there is a task would be one."""
    assert not answers_ahead(Shadow(Gate(1)))
