"""What happened to the requests of one stack in one slot of time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from functools import partial

WIDTH = 1.05
"""Latencies are counted in buckets of a twentieth: ratios are to be told apart, not figures."""
MIDDLE: float = WIDTH**-0.5
BOUNDS = tuple(1e-4 * WIDTH**power for power in range(300))
"""Upper ends of the buckets in seconds: 0.1 ms to about 4 minutes; one more is open."""

BATCH = 4096
"""Most latencies that are kept as they came."""

bucket_of = partial(bisect_left, BOUNDS)
"""Return the bucket of a latency in seconds."""


class Outcomes:
    """Counts of one stack: requests that ended, those that failed or were late, and latencies."""

    __slots__ = ("ended", "failed", "fresh", "late", "times")

    def __init__(self) -> None:
        self.fresh: list[float] = []
        """Latencies as they came, in seconds: `sort` counts them, many at once being cheaper."""
        self.ended: float = 0
        self.failed: float = 0
        self.late: float = 0
        self.times: dict[int, float] = {}

    @property
    def timed(self) -> float:
        """How many latencies there are."""
        return sum(self.times.values())

    def sort(self) -> None:
        """Count the requests that have ended since this was called last."""
        fresh, times = self.fresh, self.times
        self.ended += len(fresh)
        fresh.sort()
        done = 0
        while done < len(fresh):
            bucket = bucket_of(fresh[done])
            # A step a bucket that is in use costs less than one for each latency.
            last = bucket == len(BOUNDS)
            until = len(fresh) if last else bisect_right(fresh, BOUNDS[bucket], done)
            times[bucket] = times.get(bucket, 0) + until - done
            done = until
        fresh.clear()

    def add(self, other: Outcomes) -> None:
        """Take what has ended elsewhere."""
        self.ended += other.ended
        self.failed += other.failed
        self.late += other.late
        times = self.times
        for bucket, count in other.times.items():
            times[bucket] = times.get(bucket, 0) + count

    def wait(self, seconds: float) -> None:
        """Take a request that has gone on for so long without an end: it is slow already."""
        bucket = bucket_of(seconds)
        self.times[bucket] = self.times.get(bucket, 0) + 1

    def fade(self, factor: float) -> None:
        """Let what was counted weigh less."""
        self.ended *= factor
        self.failed *= factor
        self.late *= factor
        self.times = {bucket: count * factor for bucket, count in self.times.items()}


def seconds_of(bucket: int) -> float:
    """Return a latency in the middle of a bucket."""
    return BOUNDS[min(bucket, len(BOUNDS) - 1)] * MIDDLE


def quantile(times: Mapping[int, float], share: float) -> int:
    """Return the bucket that ``share`` of the latencies do not exceed; 0 without latencies."""
    missing = share * sum(times.values())
    bucket = 0
    for bucket in sorted(times):
        missing -= times[bucket]
        # A hair, because what has faded is no whole number.
        if missing <= 1e-9:
            break
    return bucket


def above(times: Mapping[int, float], bucket: int) -> float:
    """Return how many latencies lie beyond a bucket."""
    return sum(count for other, count in times.items() if other > bucket)
