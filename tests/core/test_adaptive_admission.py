"""The adaptive gate: who gets in, who waits, and who is looked at."""

from __future__ import annotations

from resilience_mw.core import SKIP, AdaptiveGate, Reply, Ticket
from resilience_mw.core.adaptive import adaptive_gates

from .requests import Request
from .windows import Recorder, Server, build


def test_without_senses_it_is_a_gate_with_the_laws_limit():
    """Nobody has attached it to a server yet: no window ever ends."""
    law = Recorder(2)
    gate = AdaptiveGate(law, max_queue=0)
    for at in (100.0, 200.0):
        assert gate.enter(Request(at)) is None
    assert isinstance(gate.enter(Request(300.0)), Reply)
    gate.tick(400.0)
    assert law.windows == []
    snapshot = gate.snapshot()
    assert (snapshot.limit, snapshot.inflight, snapshot.law) == (2, 2, "aimd")
    assert (snapshot.elu, snapshot.smoothed_latency) == (None, None)


def test_a_saturated_law_refuses_who_would_have_to_wait():
    """A full gate under a saturated loop has no use for a queue."""
    law = Recorder(1)
    gate, _ = build(law)
    gate.enter(Request(100.1))
    assert isinstance(gate.enter(Request(100.2)), Ticket)
    law.saturated = True
    reply = gate.enter(Request(100.3))
    assert isinstance(reply, Reply)
    assert (reply.status, reply.reason) == (503, "saturated")


def test_the_law_says_how_long_to_wait():
    """From arrival on, or from the end of the wait in a gate further out."""
    gate, _ = build(Recorder(1))
    gate.enter(Request(100.1))
    ticket = gate.enter(Request(100.5))
    assert isinstance(ticket, Ticket)
    assert ticket.expires == 103.5
    late = Request(100.5)
    late.admitted = 100.9
    ticket = gate.enter(late)
    assert isinstance(ticket, Ticket)
    assert ticket.expires == 103.9


def test_an_alert_law_sees_how_long_a_request_waited():
    """And how many wait to be accepted; what it refuses is counted under its reason."""
    law = Recorder(1)
    law.alert = law.saturated = True
    gate, server = build(law)
    server.backlog = 20
    waited = Request(100.1)
    waited.queue_wait = 0.4
    law.answer = "waited"
    reply = gate.enter(waited)
    assert isinstance(reply, Reply)
    assert reply.reason == "waited"
    assert law.asked == [(0.4, 20)]
    assert gate.snapshot().waited_p50 == 0.4
    law.answer = None
    assert gate.enter(Request(100.2)) is None
    assert gate.refused == {"waited": 1}


def test_an_alert_law_glances_while_there_is_no_overload():
    """One request in a few milliseconds is looked at, not each."""
    law = Recorder(10)
    law.alert = True
    gate, _ = build(law)
    for at in range(50):
        gate.enter(Request(100.1 + at * 0.0001))
        gate.inflight = 0
    assert 1 <= len(law.asked) <= 5


def test_an_exempt_path_is_not_even_looked_at():
    """Neither counted, nor refused, nor the end of a window."""
    law = Recorder(1)
    gate = AdaptiveGate(law, exempt=("/static/",))
    gate.listen(Server().sense)
    assert gate.enter(Request(100.0, "/static/x")) is SKIP
    assert (gate.inflight, gate.admitted) == (0, 0)


def test_the_adaptive_gates_of_a_row_are_found():
    """Those that need senses, and no others."""
    gate = AdaptiveGate(Recorder())
    assert adaptive_gates([gate]) == [gate]
