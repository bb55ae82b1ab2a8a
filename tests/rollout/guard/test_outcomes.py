"""Counting latencies many at once."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from resilience_mw.core.rollout.outcomes import Outcomes, bucket_of


@given(st.lists(st.floats(0.0, 1000.0), max_size=300))
def test_sorting_counts_each_latency_in_its_bucket(latencies: list[float]):
    """However many at once, and whatever was counted before."""
    outcomes = Outcomes()
    for part in (latencies, latencies[:7]):
        outcomes.fresh.extend(part)
        outcomes.sort()
    assert outcomes.times == Counter(map(bucket_of, [*latencies, *latencies[:7]]))
    assert outcomes.ended == len(latencies) + min(7, len(latencies))
    assert outcomes.fresh == []
