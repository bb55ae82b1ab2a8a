"""Faults that users of other limiters reported, each as a test of ours.

The numbers are those of the survey in the documentation; the projects and issues are named there
and below.
"""

from __future__ import annotations

import pytest

from resilience_mw.core import AdaptiveGate, Reply, Senses
from resilience_mw.core.laws import Adaptive
from resilience_mw.testing import Load, Worker, answer, compute, pool, simulate, wait
from tests.core.laws.windows import Feeder
from tests.core.requests import Request


def adaptive_gate(**options: float) -> AdaptiveGate:
    """Return a gate with our law."""
    return AdaptiveGate(Adaptive(**options), random=lambda: 0.5)  # type: ignore[arg-type]


def test_report_01_idle_hours_hide_nothing():
    """fastify/under-pressure #294: after an hour of idleness, one busy second is seen as such."""
    worked = [0.0]
    gate = adaptive_gate()
    gate.listen(lambda now: Senses(now, worked[0], int(worked[0] * 50)))
    gate.tick(100.0)
    gate.tick(3700.0)
    for tenth in range(1, 21):
        worked[0] += 0.1
        gate.tick(3700.0 + tenth / 10)
    assert gate.snapshot().elu == pytest.approx(1.0)
    assert gate.law.alert


def test_report_03_a_long_overload_does_not_become_normal():
    """Netflix #165, failsafe-go #127, Envoy #38338: ten minutes at 100 times the latency."""
    law = Adaptive()
    feeder = Feeder(law)
    feeder.feed(60, utilization=0.1, inflight=2, latencies=[0.020] * 10)
    limits = []
    for _ in range(6000):  # a downstream that serves 100 a second, whatever we send it
        now = law.limit
        latencies = [max(0.020, now / 100.0)] * 10
        limits += feeder.feed(0.1, utilization=0.1, inflight=now, refused=10, latencies=latencies)
    assert max(limits[300:]) <= limits[300] * 1.5
    assert max(limits[300:]) <= 20
    assert law.baseline == pytest.approx(0.020, rel=0.05)


def test_report_04_everything_ends_in_the_same_timeout():
    """Netflix #137: no variance and no gradient, but nothing is served: down to the floor."""
    law = Adaptive()
    feeder = Feeder(law)
    feeder.feed(10, utilization=0.1, inflight=5, latencies=[0.020] * 10)
    limits = feeder.feed(
        5, utilization=0.1, inflight=200, refused=5, latencies=[5.0] * 10, overdue=10
    )
    assert limits[-1] <= 2


def test_report_06_no_minutes_to_find_the_capacity():
    """Netflix #35, Vector #7371: a step to half of a capacity of 500 is let in at once."""
    handler = compute(0.0001) + pool("db", 0.5)
    load = Load(steps=[(2, 10), (20, 500)], seed=2)
    result = simulate(handler, load, Worker(pools={"db": 500}), adaptive_gate())
    assert result.summary(7).refused_share <= 0.05
    assert result.summary().refused_share <= 0.05


def test_report_08_cancelled_handlers_count():
    """Netflix PR #126: where all handlers run into the deadline, the limit shrinks."""
    gate = AdaptiveGate(Adaptive(), max_queue=0)
    gate.listen(lambda now: Senses(now, 0.0, int(now * 1000)))
    running: list[Request] = []
    for tick in range(100):
        now = 100.0 + tick / 10
        gate.tick(now)
        while len(running) < 50:
            request = Request(now)
            if gate.enter(request) is not None:
                break
            running.append(request)
        for request in [r for r in running if now - r.arrived >= 0.3]:
            request.overdue = True
            running.remove(request)
            gate.exit(request, now)
    assert gate.limit <= 2


def test_report_14_a_slow_route_beside_a_fast_one():
    """Netflix #121, Vector #21725: the fast route is let in though the slow one is overloaded."""
    fast = compute(0.001) + wait(0.005)
    slow = compute(0.001) + pool("slow", 2.0)
    load = Load(steps=[(40, 60)], shares=(5.0, 1.0), patience=30.0)
    result = simulate([fast, slow], load, Worker(pools={"slow": 10}), adaptive_gate())
    assert result.summary(route=1).offered > 1.5 * 5  # of five a second that the pool can do
    assert result.summary(route=0).refused_share <= 0.05
    assert result.summary(route=0).p99 < 0.05


def test_report_15_streams_are_no_latency():
    """Envoy #42243: fifty event streams of ten minutes beside short requests."""
    stream = compute(0.001) + answer() + wait(600.0)
    short = compute(0.002) + wait(0.005)
    load = Load(steps=[(30, 100)], shares=(1.0, 60.0), seed=2)
    gate = adaptive_gate()
    result = simulate([stream, short], load, Worker(), gate)
    assert gate.snapshot().streams > 30
    assert result.summary().refused_share == 0
    assert gate.law.baseline == pytest.approx(0.007, abs=0.003)
    streams = gate.snapshot().streams
    assert gate.limit - streams == gate.law.limit >= 32  # as many slots as without them


def test_streams_leave_the_limit_its_slots():
    """While the limit is low, streams do not use it up: it counts requests that work."""
    gate = adaptive_gate()
    gate.listen(lambda now: Senses(now, 0.0, int(now * 1000)))
    gate.tick(100.0)
    gate.law.limit = gate.limit = 3
    streams = [Request(100.0) for _ in range(3)]
    for stream in streams:
        assert gate.enter(stream) is None
        stream.answered_at = 100.01
        gate.stream(stream)
        gate.stream(stream)  # said twice, counted once
    assert (gate.limit, gate.inflight) == (6, 3)
    for stream in streams:
        gate.exit(stream, 700.0)
    assert (gate.limit, gate.inflight) == (3, 0)


@pytest.mark.parametrize("count", [0, 1, 9])
def test_report_17_too_few_samples(count):
    """Envoy #14997: from a window with too few samples follows nothing, and no nonsense."""
    law = Adaptive()
    before = law.limit
    law_limits = Feeder(law).feed(0.1, latencies=[1e9] * count, inflight=1)
    assert law_limits == [before]
    assert law.baseline is None


def test_report_20_a_step_is_answered_in_time():
    """Sentinel #3212, kratos: 0.6x to 2x on one worker, at least 80 % in the first ten seconds."""
    result = simulate(
        (compute(0.005) + wait(0.01)) * 2,
        Load(steps=[(20, 60), (10, 200)], seed=6),
        Worker(),
        adaptive_gate(),
    )
    assert result.summary(20, 30).goodput >= 80


def test_report_22_a_late_sample_is_evidence():
    """hapi #1536: after five seconds in which no sample could be taken, the first request knows."""
    worked = [0.0]
    gate = adaptive_gate()
    gate.listen(lambda now: Senses(now, worked[0], int(worked[0] * 20) + 1))
    gate.tick(100.0)
    gate.tick(100.2)
    worked[0] = 5.0
    late = Request(105.2)
    late.queue_wait = 4.0
    reply = gate.enter(late)
    assert isinstance(reply, Reply)
    assert reply.reason == "waited"


def test_a_mix_that_turns_slow_is_let_in_again():
    """Work that takes longer by itself is not a queue: a cut that shows so is undone."""
    asked = [0]

    def seconds(_: object) -> float:
        asked[0] += 1
        return 0.005 if asked[0] < 4000 else 1.0

    load = Load(steps=[(60, 200)], seed=2)
    result = simulate(compute(0.001) + wait(seconds), load, Worker(), adaptive_gate())
    assert result.summary(0, 20).refused_share == 0
    assert result.summary(40, 60).refused_share == 0
    assert result.summary().refused_share < 0.1


@pytest.mark.parametrize("shares", [(1.0, 1.0), (9.0, 1.0), (3.0, 7.0)])
def test_two_kinds_of_latency(shares):
    """Hits of 5 ms and misses of 100 ms are not an overload, nor are those hits that end first."""
    hit, miss = compute(0.001) + wait(0.004), compute(0.001) + wait(0.1)
    load = Load(steps=[(40, 300)], shares=shares, seed=2)
    result = simulate([hit, miss], load, Worker(), adaptive_gate())
    assert result.summary().refused_share <= 0.001


def test_failures_and_departures_are_no_samples():
    """What fails at once, or is left by its client, does not make the baseline look fast."""
    gate = adaptive_gate()
    gate.listen(lambda now: Senses(now, 0.0, int(now * 1000)))
    gate.tick(100.0)
    for status, answered in ((500, 100.01), (0, 0.0)):
        for _ in range(20):
            request = Request(100.0)
            assert gate.enter(request) is None
            request.status, request.answered_at = status, answered
            gate.exit(request, 100.02)
    gate.tick(100.2)
    assert gate.law.baseline is None
