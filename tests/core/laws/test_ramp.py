"""How fast requests in flight may grow."""

from __future__ import annotations

import pytest

from resilience_mw.core.laws.ramp import FADE, FLOOR, FLOOR_A_SECOND, STEP, Ramp
from tests.core.laws.windows import window


def run(ramp, *, peak, done=None, excess=0.0, baseline=0.05, since=0.0, windows=1):
    """Feed windows of 0.1 s, in which all that run end unless told; return when the last ended."""
    now = since
    ended = [baseline] * (peak if done is None else done)
    for _ in range(windows):
        now += 0.1
        ramp.update(window(now=now, peak=peak, latencies=ended), baseline, excess)
    return now


def test_nothing_is_suspicious_until_a_latency_is_known():
    """The first request of a worker, or all of a burst, find no limit."""
    ramp = Ramp(1000)
    ramp.update(window(now=1.0, peak=500), None, 0.0)
    assert ramp.limit == 1000


def test_what_runs_when_it_begins_is_taken_for_proven():
    """A worker that starts under full traffic does not refuse it."""
    ramp = Ramp(1000)
    run(ramp, peak=200)
    assert ramp.limit == pytest.approx(200 * STEP, rel=0.01)


@pytest.mark.parametrize(("baseline", "floor"), [(0.01, FLOOR), (1.0, FLOOR_A_SECOND)])
def test_a_few_need_no_proof(baseline, floor):
    """Nor do more of them where each takes long by itself."""
    ramp = Ramp(1000)
    run(ramp, peak=1, baseline=baseline, windows=20)
    assert ramp.limit == floor


def test_growth_is_proven_by_a_latency_that_stays():
    """Three times as many, once those who run have ended in time."""
    ramp = Ramp(1000)
    at = run(ramp, peak=1, windows=5)
    at = run(ramp, peak=30, since=at, windows=4)
    assert ramp.limit == pytest.approx(30 * STEP, rel=0.01)
    run(ramp, peak=90, since=at, windows=4)
    assert ramp.limit == pytest.approx(90 * STEP, rel=0.01)


def test_growth_that_queues_proves_nothing():
    """A latency that rises with the number is a queue."""
    ramp = Ramp(1000)
    at = run(ramp, peak=1, windows=5)
    run(ramp, peak=32, excess=0.05, since=at, windows=50)
    assert ramp.limit == FLOOR


def test_the_first_that_end_prove_nothing():
    """Behind a pool of ten, ten have the latency of ever, and the others have not ended."""
    ramp = Ramp(1000)
    at = run(ramp, peak=1, windows=5, baseline=0.1)
    at = run(ramp, peak=32, done=10, since=at, windows=3, baseline=0.1)
    assert ramp.limit == FLOOR
    run(ramp, peak=32, done=10, since=at, windows=1, baseline=0.1)
    assert ramp.limit == pytest.approx(32 * STEP, rel=0.01)


def test_what_was_proven_fades():
    """Slowly: a lull of seconds does not make normal traffic suspicious."""
    ramp = Ramp(1000)
    at = run(ramp, peak=100, windows=10)
    at = run(ramp, peak=1, since=at, windows=100)
    assert ramp.limit > 100
    run(ramp, peak=1, since=at, windows=int(10 * FADE * 3))
    assert ramp.limit == FLOOR


def test_never_above_the_greatest_limit():
    """`max_limit` holds."""
    ramp = Ramp(50)
    run(ramp, peak=50, windows=10)
    assert ramp.limit == 50
