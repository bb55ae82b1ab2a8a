"""The model itself, against queueing theory and against what servers are known to do."""

from __future__ import annotations

from typing import Any

import pytest

from resilience_mw.core import AIMD, AdaptiveGate, Gate
from resilience_mw.testing import (
    FakeClock,
    Load,
    Worker,
    answer,
    breathe,
    compute,
    pool,
    simulate,
    thread_compute,
    thread_wait,
    wait,
)

FREE: dict[str, Any] = {"accept": 0.0, "parse": 0.0, "serve": 0.0, "refuse": 0.0, "turn": 1e-7}


def mean(values):
    """Return the mean."""
    values = list(values)
    return sum(values) / len(values)


@pytest.mark.parametrize("kind", ["asyncio", "uvloop", "threads"])
@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_mean_wait_of_a_computing_handler(kind, load):
    """Poisson arrivals of equal work wait as M/D/1 says: rho s / (2 (1 - rho)) (Khinchine)."""
    work = 0.010
    worker = Worker(kind=kind, threads=1, **FREE)
    result = simulate(compute(work), Load(steps=[(1500, load / work)], seed=5), worker)
    waited = mean(o.latency - work for o in result.outcomes)
    assert waited == pytest.approx(load * work / (2 * (1 - load)), rel=0.12, abs=2e-5)


@pytest.mark.parametrize("kind", ["asyncio", "uvloop", "threads"])
def test_utilization_law(kind):
    """Utilization is the rate times the work of a request."""
    worker = Worker(kind=kind)
    handler = compute(0.002) + wait(0.01) + compute(0.002)
    result = simulate(handler, Load(steps=[(100, 100)], seed=2), worker)
    work = worker.work(handler, new_connections=False)
    rate = len(result.outcomes) / 100
    turns = 0.05 * worker.turn / worker.tick  # and a little for the loop itself
    assert result.busy / result.ended == pytest.approx(rate * work + turns, rel=0.03)


def test_littles_law():
    """Requests in flight are their rate times their time, in a worker with a pool."""
    worker = Worker(pools={"db": 10})
    gate = Gate(1000)
    load = Load(steps=[(300, 80)], seed=4)
    result = simulate(pool("db", 0.1), load, worker, gate)
    inflight = mean(sample.inflight for sample in result.samples)
    spent = mean(outcome.latency for outcome in result.outcomes)
    assert inflight == pytest.approx(len(result.outcomes) / 300 * spent, rel=0.05)


def test_processor_sharing():
    """Handlers that let each other run share the CPU: mean time s / (1 - rho)."""
    handler = (compute(0.0005) + breathe()) * 20
    load = Load(steps=[(600, 60)], seed=9)
    result = simulate(handler, load, Worker(**FREE))
    assert mean(o.latency for o in result.outcomes) == pytest.approx(0.010 / 0.4, rel=0.12)


@pytest.mark.parametrize(
    ("handler", "worker"),
    [
        (compute(0.01), Worker()),
        (pool("db", 0.1), Worker(pools={"db": 10})),
        (thread_wait(0.1), Worker(tokens=8)),
        (wait(0.05), Worker(kind="threads", threads=4)),
        (thread_compute(0.01), Worker()),
        (compute(0.01), Worker(kind="threads")),
        (compute(0.01), Worker(stolen=0.5)),
    ],
)
def test_capacity(handler, worker):
    """Just below the capacity all are served; above it, no more than the capacity are."""
    capacity = worker.capacity(handler)
    calm = Load(steps=[(30, 0.9 * capacity)], poisson=False)
    assert simulate(handler, calm, worker).summary().goodput == pytest.approx(
        0.9 * capacity, rel=0.02
    )
    result = simulate(handler, Load(steps=[(30, 1.5 * capacity)], patience=100), worker)
    served = sum(o.arrived + o.latency < 30 for o in result.outcomes) / 30
    assert served == pytest.approx(capacity, rel=0.03)


def test_most():
    """G = (1 - L r) / (s - r): refusing is work too."""
    worker = Worker(parse=0.0, serve=0.0, refuse=0.001)
    handler = compute(0.010)
    assert worker.most(handler, 50) == 50
    assert worker.most(handler, 200) == pytest.approx((1 - 0.2) / 0.009)
    assert worker.most(handler, 2000) == 0


def test_same_seed_same_result():
    """Two runs are equal in every outcome."""
    load = Load(steps=[(5, 300)], seed=3)

    def once():
        gate = AdaptiveGate(AIMD(initial_limit=20))
        return simulate(compute(0.005), load, Worker(kind="uvloop"), gate).outcomes

    assert once() == once()
    assert once() != simulate(compute(0.005), Load(steps=[(5, 300)], seed=4)).outcomes


def test_a_limit_on_concurrency_is_blind_to_computing():
    """Handlers without await are never two at once, however many ask."""
    gate = Gate(2)
    result = simulate(compute(0.010), Load(steps=[(20, 300)]), Worker(), gate)
    assert gate.refused == {}
    assert max(sample.inflight for sample in result.samples) <= 1
    assert result.summary(5).goodput < 10


def test_uvloop_accepts_one_connection_a_turn():
    """With long turns, new connections starve in the accept queue under uvloop alone."""
    handler = (compute(0.001) + breathe()) * 10
    load = Load(steps=[(20, 400)], new_connections=True)
    unanswered = {
        kind: simulate(handler, load, Worker(kind=kind), Gate(7)).summary().unanswered
        for kind in ("asyncio", "uvloop")
    }
    assert unanswered["asyncio"] == 0
    assert unanswered["uvloop"] > 1000


def test_clients_leave():
    """Who has no answer in time counts as unanswered, and is worked for all the same."""
    result = simulate(compute(0.01), Load(steps=[(10, 200)], patience=1.0))
    summary = result.summary()
    assert summary.unanswered > 500
    assert summary.p99 <= 1.0
    assert result.busy / result.ended > 0.99


def test_pause():
    """A pause delays those that came in it by what was left of it."""
    load = Load(steps=[(10, 10)], poisson=False)
    result = simulate(compute(0.001), load, Worker(pauses=[(5.0, 0.4)]))
    late = [o for o in result.outcomes if o.latency > 0.01]
    assert all(o.arrived + o.latency == pytest.approx(5.4, abs=0.01) for o in late)
    assert len(late) == 4


def test_streams_answer_before_they_end():
    """A client has its answer when the response starts, not when the stream ends."""
    handler = compute(0.001) + answer() + wait(60.0)
    result = simulate(handler, Load(steps=[(10, 5)]), Worker(), Gate(1000))
    assert result.summary().p99 < 0.02


def test_waiting_in_a_gate_ends_with_the_client():
    """A client that leaves the gate's queue is forgotten, and takes no slot later."""
    gate = Gate(1, max_queue=100, max_wait=100.0)
    result = simulate(wait(20.0), Load(steps=[(3, 2)], patience=1.0), Worker(), gate)
    assert result.summary().unanswered == len(result.outcomes)
    assert gate.queued == 0
    assert gate.admitted == 1


def test_shares():
    """Routes are asked for in the proportion of their shares."""
    load = Load(steps=[(100, 50)], shares=(3.0, 1.0))
    result = simulate([compute(0.001), compute(0.002)], load)
    first, second = result.summary(route=0), result.summary(route=1)
    assert first.offered / second.offered == pytest.approx(3.0, rel=0.1)
    with pytest.raises(ValueError, match="one entry for each handler, got 2 for 1"):
        simulate(compute(0.001), load)


def test_drawn_durations():
    """A duration may be drawn; capacity is taken from its mean."""
    handler = compute(lambda random: random.expovariate(100))
    assert Worker(**FREE).capacity(handler) == pytest.approx(100, rel=0.05)
    result = simulate(handler, Load(steps=[(600, 50)], seed=3), Worker(**FREE))
    assert mean(o.latency for o in result.outcomes) == pytest.approx(0.02, rel=0.15)  # M/M/1


def test_fake_clock():
    """It moves when told, and never back."""
    clock = FakeClock(5.0)
    assert clock.advance(1.5) == clock() == 6.5
    with pytest.raises(ValueError, match="cannot go back, got -1"):
        clock.advance(-1)
