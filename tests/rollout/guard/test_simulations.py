"""The guard on simulated traffic, with chance."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.rollout_guard import TROUBLES, Traffic, false_trips, run
from resilience_mw.core.rollout.comparison import RolloutGuard


def test_a_thousand_healthy_roll_outs_go_through():
    """Of all kinds of traffic, for a minute and a half each: at most one is stopped by chance."""
    assert len(false_trips(1000, seed=7)) <= 1


@pytest.mark.parametrize(("rate", "share"), [(100.0, 0.5), (500.0, 0.02), (100.0, 1.0)])
@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_trouble_is_seen_within_the_window(trouble, rate, share):
    """Failing, hanging or slow: for most draws soon, for nearly all before the window is over."""
    traffic = replace(TROUBLES[trouble], rate=rate, share=share, seconds=60.0)
    found = [run(traffic, seed) for seed in range(10)]
    seen = [after for after, _ in filter(None, found) if after <= RolloutGuard().window]
    assert len(seen) >= 9


def test_an_hour_of_few_requests_with_one_failure_each():
    """A request every twenty seconds, each hundredth of them failing on the new stack."""
    traffic = Traffic(rate=0.1, share=0.5, more_fails=0.01, before=600.0, seconds=3600.0)
    assert [run(traffic, seed) for seed in range(20)] == [None] * 20
