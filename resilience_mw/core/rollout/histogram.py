"""Quantiles of recent latencies, from counts in buckets that grow by a constant factor."""

from __future__ import annotations

from bisect import bisect_left

STEP = 2**0.25
"""Each bucket is wider than the one before by this: a quantile is off by a tenth at most."""

BOUNDS = tuple(0.0001 * STEP**power for power in range(84))
"""Upper ends of the buckets in seconds: 0.1 ms to about 3 minutes; one more is open."""

KEPT = 60.0
"""Seconds after which counts become old, and then are dropped: quantiles are of the last one to
two minutes, as long as anything comes."""


class Histogram:
    """Counts latencies of the last minute or two."""

    __slots__ = ("_counts", "_older", "_until")

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS) + 1)
        self._older = self._counts
        self._until = 0.0

    def add(self, seconds: float, now: float) -> None:
        """Count one latency that was known at ``now``."""
        if now >= self._until:
            fresh = now < self._until + KEPT
            self._older = self._counts if fresh else [0] * (len(BOUNDS) + 1)
            self._counts = [0] * (len(BOUNDS) + 1)
            self._until = now + KEPT
        self._counts[bisect_left(BOUNDS, seconds)] += 1

    def quantiles(self, *shares: float) -> tuple[float | None, ...]:
        """Return the latency in seconds below which each share lies; ``None`` without counts."""
        counts = [new + old for new, old in zip(self._counts, self._older, strict=True)]
        total = sum(counts)
        if not total:
            return (None,) * len(shares)
        return tuple(_quantile(counts, share * total) for share in shares)


def _quantile(counts: list[int], wanted: float) -> float:
    passed = 0
    for bucket, count in enumerate(counts):
        if count and passed + count >= wanted:
            if bucket == len(BOUNDS):
                return BOUNDS[-1]
            upper = BOUNDS[bucket]
            lower = BOUNDS[bucket - 1] if bucket else 0.0
            return lower + (upper - lower) * (wanted - passed) / count
        passed += count
    raise AssertionError("unreachable: the counts add up to the total")  # pragma: no cover
