"""From single requests to the figures that are compared."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.load.record import Record

# Beyond this, the 99th percentile of the generator's own delay makes its latencies doubtful.
MAX_LAG = 0.05


@dataclass(frozen=True, slots=True)
class Slot:
    """The requests meant to be sent in one stretch of the run; latencies in seconds."""

    begin: float
    offered: int
    answered: int
    in_time: int
    refused: int
    unanswered: int
    p50: float
    p99: float


@dataclass(frozen=True, slots=True)
class Summary:
    """What became of one run. Times are in seconds; a percentile of nothing is NaN.

    Attributes:
        seconds: how long requests were sent.
        bound: what counts as in time.
        offered: requests meant to be sent.
        answered: 200s.
        in_time: 200s with a latency of at most `bound`.
        p50, p99: latency of the 200s.
        refused: 503s, with the percentiles of their latency.
        unanswered: requests that got no HTTP answer at all.
        outcomes: how many of each status or failure.
        retried: requests sent twice, because an idle connection was closed under them.
        lag_p99: how late the generator itself was.
        disturbed: the generator was too late, or had no sockets left: do not trust this run.
        slots: the same over time.
    """

    seconds: float
    bound: float
    offered: int
    answered: int
    in_time: int
    p50: float
    p99: float
    refused: int
    refused_p50: float
    refused_p99: float
    unanswered: int
    outcomes: dict[str, int]
    retried: int
    lag_p99: float
    lag_max: float
    disturbed: bool
    slots: list[Slot]

    def __str__(self) -> str:
        refused = f"p50 {human(self.refused_p50)}, p99 {human(self.refused_p99)}"
        lines = [
            f"offered     {self.offered} in {self.seconds:.1f} s",
            f"in time     {self.in_time} ({self.in_time / max(1, self.offered):.1%} of offered, "
            f"{self.in_time / self.seconds:.1f}/s within {self.bound * 1000:.0f} ms)",
            f"200         {self.answered}, p50 {human(self.p50)}, p99 {human(self.p99)}",
            f"503         {self.refused}, {refused}",
            f"unanswered  {self.unanswered}",
            "outcomes    " + ", ".join(f"{name}: {n}" for name, n in self.outcomes.items()),
            f"lag         p99 {human(self.lag_p99)}, max {human(self.lag_max)}",
        ]
        if self.disturbed:
            lines.append("DISTURBED: the generator itself was the bottleneck")
        return "\n".join(lines)


def summarize(
    records: Sequence[Record], *, bound: float = 0.5, slot: float = 1.0, seconds: float = 0.0
) -> Summary:
    """Sum up a run; `slot` is the width of the time series, `seconds` the length of the run.

    Without `seconds` the length is that of the intended times.
    """
    if not seconds:
        seconds = _span(records)
    oks = _latencies(records, 200)
    refusals = _latencies(records, 503)
    lags = sorted(record.lag for record in records)
    outcomes = Counter(str(record.outcome) for record in records)
    lag_p99 = percentile(lags, 99)
    return Summary(
        seconds=seconds,
        bound=bound,
        offered=len(records),
        answered=len(oks),
        in_time=_within(oks, bound),
        p50=percentile(oks, 50),
        p99=percentile(oks, 99),
        refused=len(refusals),
        refused_p50=percentile(refusals, 50),
        refused_p99=percentile(refusals, 99),
        unanswered=_unanswered(records),
        outcomes=dict(sorted(outcomes.items())),
        retried=sum(record.retried for record in records),
        lag_p99=lag_p99,
        lag_max=lags[-1] if lags else math.nan,
        disturbed=lag_p99 > MAX_LAG or outcomes["unsent"] > 0,
        slots=_slots(records, bound, slot),
    )


def percentile(ordered: Sequence[float], percent: float) -> float:
    """The nearest-rank percentile of values in ascending order; NaN if there are none."""
    if not ordered:
        return math.nan
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]


def human(seconds: float) -> str:
    """A latency for people: three digits in seconds or milliseconds, or a dash."""
    if math.isnan(seconds):
        return "-"
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"


def _span(records: Sequence[Record]) -> float:
    # n requests a gap apart take n gaps, not n - 1.
    if len(records) < 2:
        return 1.0
    last = records[-1].intended - records[0].intended
    return last * len(records) / (len(records) - 1)


def _latencies(records: Sequence[Record], status: int) -> list[float]:
    return sorted(record.latency for record in records if record.outcome == status)


def _within(ordered: Sequence[float], bound: float) -> int:
    return sum(latency <= bound for latency in ordered)


def _unanswered(records: Sequence[Record]) -> int:
    return sum(not isinstance(record.outcome, int) for record in records)


def _slots(records: Sequence[Record], bound: float, width: float) -> list[Slot]:
    if not records:
        return []
    buckets: list[list[Record]] = [[] for _ in range(int(records[-1].intended / width) + 1)]
    for record in records:
        buckets[int(record.intended / width)].append(record)
    return [_slot(bucket, i * width, bound) for i, bucket in enumerate(buckets)]


def _slot(records: Sequence[Record], begin: float, bound: float) -> Slot:
    oks = _latencies(records, 200)
    return Slot(
        begin=begin,
        offered=len(records),
        answered=len(oks),
        in_time=_within(oks, bound),
        refused=sum(record.outcome == 503 for record in records),
        unanswered=_unanswered(records),
        p50=percentile(oks, 50),
        p99=percentile(oks, 99),
    )
