"""The gate, driven by hand."""

from __future__ import annotations

import pytest

from resilience_mw.core import SKIP, Gate, Reply, Ticket, TicketState

from .requests import Request


def enter(gate: Gate, now: float = 100.0) -> Request:
    """Send a request that is let in."""
    request = Request(now)
    assert gate.enter(request) is None
    return request


def wait(gate: Gate, now: float = 100.0) -> Ticket:
    """Send a request that has to wait."""
    ticket = gate.enter(Request(now))
    assert isinstance(ticket, Ticket)
    return ticket


def refused(gate: Gate, now: float = 100.0) -> Reply:
    """Send a request that is refused."""
    reply = gate.enter(Request(now))
    assert isinstance(reply, Reply)
    return reply


def test_a_refusal_says_when_to_come_back():
    """503 Service Busy, a reason for the counters, Retry-After in seconds."""
    gate = Gate(1)
    enter(gate)
    reply = refused(gate)
    assert (reply.status, reply.body, reply.reason) == (503, b"Service Busy", "limit")
    assert ("Retry-After", "1") in reply.headers
    assert refused(gate) is reply  # rendered once
    assert gate.refused == {"limit": 2}


def test_a_limit_of_zero_admits_nobody():
    """There is no slot to give."""
    assert refused(Gate(0)).reason == "limit"


def test_an_exempt_path_is_skipped_even_when_full():
    """Neither counted nor refused."""
    gate = Gate(1, exempt=("/static/",))
    enter(gate)
    assert gate.enter(Request(path="/static/x")) is SKIP
    assert (gate.inflight, gate.admitted, gate.refused) == (1, 1, {})


def test_a_gate_for_some_paths_skips_all_others():
    """A limit of one route's own counts and refuses nothing else."""
    gate = Gate(1, only=("/reports/", "/export"))
    assert gate.enter(Request(path="/")) is SKIP
    assert gate.enter(Request(path="/export")) is None
    assert isinstance(gate.enter(Request(path="/reports/1")), Reply)
    assert gate.enter(Request(path="/report")) is SKIP
    assert (gate.inflight, gate.admitted, gate.refused) == (1, 1, {"limit": 1})


def test_a_ticket_waits_as_long_as_the_gate_allows():
    """From the arrival of its request on."""
    gate = Gate(1, max_queue=1, max_wait=2.5)
    enter(gate)
    ticket = wait(gate, 107.0)
    assert (ticket.queued_at, ticket.expires) == (107.0, 109.5)


def test_a_wait_begins_anew_in_the_next_gate():
    """What a request waited in a gate further out is not taken off."""
    gate = Gate(1, max_queue=1, max_wait=2.0)
    enter(gate)
    request = Request(100.0)
    request.admitted = 105.0
    ticket = gate.enter(request)
    assert isinstance(ticket, Ticket)
    assert ticket.expires == 107.0


def test_a_freed_slot_belongs_to_the_head_of_the_queue_at_once():
    """The count never dips, so nobody can steal it."""
    gate = Gate(1, max_queue=2, max_wait=1.0)
    first = enter(gate)
    second, third = wait(gate), wait(gate)
    gate.exit(first, 101.0)
    assert (second.granted, third.waiting) == (True, True)
    assert (gate.inflight, gate.admitted, gate.queued) == (1, 2, 1)


def test_abandoning_after_the_grant_passes_the_slot_on_once():
    """However often the owner says so."""
    gate = Gate(1, max_queue=2, max_wait=1.0)
    first = enter(gate)
    second, third = wait(gate), wait(gate)
    gate.exit(first, 101.0)
    gate.abandon(second, 101.0)
    assert second.state is TicketState.ABANDONED
    assert third.granted
    gate.abandon(second, 101.0)
    gate.abandon(second, 101.0)
    assert (gate.inflight, gate.admitted, gate.queued) == (1, 2, 0)


def test_expiring_after_the_grant_changes_nothing():
    """A timer that fires late finds the ticket settled."""
    gate = Gate(1, max_queue=1, max_wait=1.0)
    first = enter(gate)
    second = wait(gate)
    gate.exit(first, 101.0)
    gate.expire(second, 101.0)
    assert second.granted
    assert (gate.inflight, gate.refused) == (1, {})


def test_abandoning_after_the_refusal_changes_nothing():
    """The refusal has been counted, and there is no slot to pass on."""
    gate = Gate(1, max_queue=1, max_wait=1.0)
    enter(gate)
    ticket = wait(gate)
    gate.expire(ticket, 101.0)
    gate.abandon(ticket, 101.0)
    assert ticket.state is TicketState.REFUSED
    assert (gate.inflight, gate.queued, gate.refused) == (1, 0, {"queue_timeout": 1})


def test_a_wait_that_its_deadline_ends_is_a_late_request():
    """504 before the ticket's own time is up, 503 from then on."""
    gate = Gate(1, max_queue=2, max_wait=1.0)
    enter(gate)
    early, late = wait(gate, 100.0), wait(gate, 100.0)
    gate.expire(early, 100.5)
    gate.expire(late, 101.0)
    assert early.reply is not None
    assert late.reply is not None
    assert (early.reply.status, early.reply.reason) == (504, "deadline")
    assert (late.reply.status, late.reply.reason) == (503, "queue_timeout")
    assert gate.refused == {"deadline": 1, "queue_timeout": 1}


def test_draining_empties_the_queue_and_keeps_it_empty():
    """Free slots are still given."""
    gate = Gate(1, max_queue=5, max_wait=1.0)
    first = enter(gate)
    tickets = [wait(gate), wait(gate)]
    gate.drain()
    assert [ticket.reply.reason for ticket in tickets if ticket.reply] == ["draining"] * 2
    assert refused(gate).reason == "draining"
    gate.exit(first, 101.0)
    enter(gate)
    assert gate.refused == {"draining": 3}


@pytest.mark.parametrize("after", [0, 1, 2])
def test_slots_are_not_handed_on_while_the_limit_is_exceeded(after: int):
    """A limit that shrank below what runs is reached by attrition."""
    gate = Gate(3, max_queue=5, max_wait=1.0)
    running = [enter(gate) for _ in range(3)]
    ticket = wait(gate)
    gate.limit = after
    gate.exit(running.pop(), 101.0)
    assert ticket.waiting
    assert gate.inflight == 2
    gate.exit(running.pop(), 101.0)
    assert ticket.granted is (after == 2)
    gate.exit(running.pop(), 101.0)
    assert ticket.granted is (after > 0)


def test_a_snapshot_does_not_change_afterwards():
    """It is a copy of numbers."""
    gate = Gate(1, name="files")
    enter(gate)
    before = gate.snapshot()
    refused(gate)
    assert (before.name, before.limit, before.inflight, before.admitted) == ("files", 1, 1, 1)
    assert before.refused == {}
    assert gate.snapshot().refused == {"limit": 1}
