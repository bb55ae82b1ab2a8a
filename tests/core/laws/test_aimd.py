"""The Node law, branch by branch, and through the gate."""

from __future__ import annotations

import pytest

from resilience_mw.core import AIMD, AdaptiveGate, Reply, Senses, Ticket
from tests.core.laws.windows import window
from tests.core.requests import Request


@pytest.mark.parametrize(
    ("limit", "utilization", "inflight", "after"),
    [
        (1000, 0.95, 500, 900),  # at elu_max already, and half in use: shrink
        (1000, 1.0, 1000, 900),
        (1000, 0.95, 499, 1000),  # not even half in use: the limit is not what fills the loop
        (999, 1.0, 500, 899),  # rounded down
        (15, 1.0, 8, 13),
        (2, 1.0, 1, 1),
        (1, 1.0, 1, 1),  # never below min_limit
        (1, 0.5, 0, 2),  # grows by at least one, idle or not
        (4, 0.5, 4, 6),
        (10, 0.949, 0, 14),  # by the root, rounded up
        (100, 0.0, 100, 110),
        (990, 0.5, 0, 1000),  # never above max_limit
        (1000, 0.5, 0, 1000),
    ],
)
def test_limit_after_one_window(limit, utilization, inflight, after):
    """One window moves the limit exactly as the table of the original says."""
    law = AIMD(initial_limit=limit)
    law.update(window(utilization=utilization, inflight=inflight, length=1.0))
    assert law.limit == after


@pytest.mark.parametrize(
    ("utilization", "saturated"), [(0.94, False), (0.95, False), (0.951, True), (1.0, True)]
)
def test_saturated_above_elu_max_only(utilization, saturated):
    """At exactly elu_max the limit shrinks, but a full gate still queues."""
    law = AIMD()
    law.update(window(utilization=utilization, length=1.0))
    assert law.saturated is saturated


def test_min_limit_is_kept():
    """However long the loop is busy, the limit stays at min_limit."""
    law = AIMD(initial_limit=100, min_limit=7)
    for _ in range(60):
        law.update(window(utilization=1.0, inflight=law.limit, length=1.0))
    assert law.limit == 7


def test_initial_limit_is_capped():
    """A start above max_limit starts at max_limit."""
    assert AIMD(initial_limit=5000, max_limit=300).limit == 300


def test_missed_windows_grow_as_if_seen():
    """A worker that slept for three windows grows three times."""
    slept, awake = AIMD(initial_limit=10), AIMD(initial_limit=10)
    slept.update(window(utilization=0.0, length=3.0))
    for _ in range(3):
        awake.update(window(utilization=0.0, length=1.0))
    assert slept.limit == awake.limit > 10


def test_retry_after_is_one_second():
    """Under aimd a refusal says Retry-After 1, however many are refused."""
    gate, loop = full_gate(limit=1, busy=True)
    loop.pass_by(gate, 1.0)
    for _ in range(100):
        reply = gate.enter(Request(loop.now))
    assert isinstance(reply, Reply)
    assert ("Retry-After", "1") in reply.headers
    loop.pass_by(gate, 1.0)
    reply = gate.enter(Request(loop.now))
    assert isinstance(reply, Reply)
    assert ("Retry-After", "1") in reply.headers


# -- through the gate -------------------------------------------------------------------------


class Loop:
    """An event loop that is as busy as it is told."""

    def __init__(self, busy: bool = False) -> None:
        self.now = 100.0
        self.worked = 0.0
        self.busy = busy

    def sense(self, now: float) -> Senses:
        return Senses(now, self.worked, 1)

    def pass_by(self, gate: AdaptiveGate, seconds: float) -> None:
        """Let time pass, and the gate notice."""
        self.now += seconds
        self.worked += seconds if self.busy else 0.0
        gate.tick(self.now)


def full_gate(limit: int, *, busy: bool = False) -> tuple[AdaptiveGate, Loop]:
    """Return a gate that is full, before its first window has ended."""
    loop = Loop(busy)
    gate = AdaptiveGate(AIMD(initial_limit=limit))
    gate.listen(loop.sense)
    gate.tick(loop.now)
    for _ in range(limit):
        assert gate.enter(Request(loop.now)) is None
    return gate, loop


def test_grown_limit_wakes_waiters():
    """When the limit grows, those who wait are let in at once."""
    gate, loop = full_gate(4)
    tickets = [gate.enter(Request(loop.now)) for _ in range(3)]
    woken: list[int] = []
    for number, ticket in enumerate(tickets):
        assert isinstance(ticket, Ticket)
        ticket.wake = lambda number=number: woken.append(number)
    loop.pass_by(gate, 1.0)
    assert gate.limit == 6
    assert woken == [0, 1]
    assert (gate.inflight, gate.queued) == (6, 1)


def test_saturated_loop_refuses_at_once():
    """A full gate queues while the loop has time, and refuses when it has none."""
    gate, loop = full_gate(4)
    assert isinstance(gate.enter(Request(loop.now)), Ticket)
    loop.busy = True
    loop.pass_by(gate, 1.0)
    reply = gate.enter(Request(loop.now))
    assert isinstance(reply, Reply)
    assert reply.reason == "saturated"


def test_freed_slot_above_the_limit_is_not_handed_on():
    """After the limit has shrunk, freed slots go to nobody until fewer run than it says."""
    gate, loop = full_gate(10)
    ticket = gate.enter(Request(loop.now))
    assert isinstance(ticket, Ticket)
    loop.busy = True
    loop.pass_by(gate, 1.0)
    assert gate.limit == 9
    gate.exit(Request(loop.now), loop.now)
    assert (gate.inflight, gate.queued) == (9, 1)
    gate.exit(Request(loop.now), loop.now)
    assert (gate.inflight, gate.queued) == (9, 0)
    assert ticket.granted


def test_waiters_have_queue_timeout():
    """A ticket expires queue_timeout after it was taken."""
    loop = Loop()
    gate = AdaptiveGate(AIMD(initial_limit=1, queue_timeout=2.5))
    gate.listen(loop.sense)
    gate.tick(loop.now)
    gate.enter(Request(loop.now))
    ticket = gate.enter(Request(loop.now))
    assert isinstance(ticket, Ticket)
    assert ticket.expires == pytest.approx(loop.now + 2.5)


def test_utilization_is_of_the_window_alone():
    """An hour of idleness does not hide ten busy seconds (fastify/under-pressure #294)."""
    gate, loop = full_gate(1)
    loop.pass_by(gate, 3600.0)
    assert gate.snapshot().elu == 0.0
    loop.busy = True
    loop.pass_by(gate, 1.0)
    assert gate.snapshot().elu == pytest.approx(1.0)
