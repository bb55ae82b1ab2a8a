"""The adaptive gate: what it measures, and what it tells its law."""

from __future__ import annotations

import pytest

from resilience_mw.core import SKIP, AdaptiveGate, Reply, Senses, Ticket

from .requests import Request
from .windows import Recorder, Server, build, run


def test_a_window_ends_with_the_first_event_after_its_time():
    """A tick or a request, whichever comes; not before."""
    law = Recorder()
    gate, server = build(law)
    gate.tick(100.999)
    assert law.windows == []
    gate.enter(Request(101.0))
    gate.tick(101.5)
    gate.tick(103.25)
    assert [window.now for window in law.windows] == [101.0, 103.25]
    assert [window.length for window in law.windows] == [1.0, 2.25]
    assert server.reads == 3


def test_a_window_tells_what_happened_in_it():
    """Utilization, turns, counts and latencies of this window alone."""
    law = Recorder(2)
    gate, server = build(law, max_queue=1)
    first, second = Request(100.1), Request(100.2)
    gate.enter(first)
    gate.enter(second)
    third = gate.enter(Request(100.3))
    assert isinstance(third, Ticket)
    assert isinstance(gate.enter(Request(100.4)), Reply)
    gate.exit(first, 100.5)
    assert third.granted
    gate.exit(second, 100.7)
    server.busy, server.turns, server.backlog = 0.25, 40, 7
    gate.tick(101.0)
    window = law.windows[0]
    assert window.utilization == pytest.approx(0.25)
    assert (window.turns, window.backlog, window.pool_waiting) == (40, 7, 3)
    assert (window.inflight, window.peak, window.queued) == (1, 2, 0)
    assert (window.refused, window.arrivals) == (1, 4)
    assert window.latencies == pytest.approx((0.4, 0.5))
    gate.tick(102.0)
    window = law.windows[1]
    assert (window.utilization, window.turns, window.refused, window.arrivals) == (0.0, 0, 0, 0)
    assert (window.peak, tuple(window.latencies)) == (1, ())


def test_a_grant_taken_back_in_the_next_window_is_no_arrival_of_minus_one():
    """Counts in a window are never negative."""
    law = Recorder(1)
    gate, _ = build(law)
    first = Request(100.1)
    gate.enter(first)
    ticket = gate.enter(Request(100.2))
    assert isinstance(ticket, Ticket)
    gate.exit(first, 100.3)
    gate.tick(101.0)
    gate.abandon(ticket, 101.1)
    gate.tick(102.0)
    assert law.windows[-1].arrivals == 0


def test_counters_that_run_backwards_read_as_idle():
    """A new loop starts again from zero."""
    law = Recorder()
    gate, server = build(law)
    server.busy, server.turns = 50.0, 100
    gate.tick(101.0)
    server.busy, server.turns = 0.0, 0
    gate.tick(102.0)
    assert [window.utilization for window in law.windows] == [1.0, 0.0]
    assert [window.turns for window in law.windows] == [100, 0]


def test_a_meter_that_stands_still_ends_no_window():
    """Nothing has been measured, so there is nothing to tell."""
    law = Recorder()
    gate = AdaptiveGate(law)
    gate.listen(lambda now: Senses(5.0, 0.0, 0))
    for now in (100.0, 101.0, 102.0):
        gate.tick(now)
    assert law.windows == []


def test_listening_anew_starts_a_new_window():
    """What was read from another server is not compared with this one."""
    law = Recorder()
    gate, _ = build(law)
    server = Server()
    server.busy = 900.0
    gate.listen(server.sense)
    gate.tick(101.0)
    assert law.windows == []
    gate.tick(102.0)
    assert (law.windows[0].utilization, law.windows[0].backlog) == (0.0, 0)


def test_a_sample_counts_from_admission():
    """Our own queue inside the sample would be positive feedback."""
    law = Recorder(1)
    gate, _ = build(law)
    run(gate, 100.1, 100.9, admitted=100.6)
    gate.tick(101.0)
    assert law.windows[0].latencies == pytest.approx((0.3,))


def test_a_refusal_further_in_is_no_sample():
    """It was quick because nothing was done."""
    law = Recorder(1)
    gate, _ = build(law)
    run(gate, 100.1, 100.1, refused="limit")
    gate.tick(101.0)
    assert law.windows[0].latencies == ()


def test_a_law_that_observes_samples_responses():
    """Their start counts; what failed or was cut short says nothing; what was late, its time."""
    law = Recorder(1, observes=True)
    gate, _ = build(law)
    run(gate, 100.1, 100.9, answered_at=100.3, status=200)
    run(gate, 100.1, 100.9, answered_at=100.2, status=500)
    run(gate, 100.1, 100.9)
    run(gate, 100.1, 100.8, overdue=True)
    gate.tick(101.0)
    assert law.windows[0].latencies == pytest.approx((0.2, 0.7))


def test_a_stream_is_sampled_once_and_counts_as_no_work():
    """The limit in force is the law's plus one for each stream."""
    law = Recorder(1, observes=True)
    gate, _ = build(law)
    stream = Request(100.1)
    gate.enter(stream)
    waiting = gate.enter(Request(100.2))
    assert isinstance(waiting, Ticket)
    stream.answered_at, stream.status = 100.3, 200
    gate.stream(stream)
    gate.stream(stream)
    assert waiting.granted
    assert (gate.limit, gate.inflight, gate.snapshot().streams) == (2, 2, 1)
    gate.tick(101.0)
    assert (law.windows[0].inflight, law.windows[0].peak) == (1, 1)
    gate.exit(stream, 101.1)
    assert (gate.limit, gate.inflight, gate.snapshot().streams) == (1, 1, 0)
    gate.tick(102.0)
    assert [len(window.latencies) for window in law.windows] == [1, 0]


def test_exempt_streams_and_laws_that_do_not_observe_are_left_alone():
    """They own no slot here, or are work to their end."""
    gate, _ = build(Recorder(1))
    request = Request(100.0)
    gate.enter(request)
    gate.stream(request)
    assert gate.snapshot().streams == 0
    exempt = AdaptiveGate(Recorder(1, observes=True), exempt=("/events/",))
    stream = Request(100.0, "/events/7")
    assert exempt.enter(stream) is SKIP
    exempt.stream(stream)
    assert exempt.snapshot().streams == 0


def test_the_reported_latency_is_smoothed():
    """The newest sample has the weight that was asked for; the open window is folded in."""
    law = Recorder(1)
    gate = AdaptiveGate(law, smoothing_factor=0.5)
    gate.listen(Server().sense)
    gate.tick(100.0)
    run(gate, 100.0, 100.4)
    run(gate, 100.0, 100.8)
    assert gate.snapshot().smoothed_latency == pytest.approx(0.6)
    gate.tick(101.0)
    assert gate.snapshot().smoothed_latency == pytest.approx(0.6)
    run(gate, 101.0, 101.2)
    assert gate.snapshot().smoothed_latency == pytest.approx(0.4)
