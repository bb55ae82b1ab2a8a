"""What happened to each request, and what that amounts to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .load import Load

IN_TIME = 0.5
"""Seconds within which an answer counts as useful."""


class Outcome(NamedTuple):
    """One request."""

    arrived: float
    """When it was sent (seconds)."""
    latency: float
    """Seconds until its answer; as long as the client's patience where there was none."""
    status: int
    """200 served, 503 refused, 0 the client left without an answer."""
    reason: str | None
    """Why it was refused."""
    route: int
    """Which of the handlers it asked for."""


class Sample(NamedTuple):
    """The gate at one moment."""

    at: float
    limit: int
    inflight: int
    queued: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Totals of the requests sent in a span of time. Times are seconds, rates are per second."""

    offered: float
    goodput: float
    """Served in time."""
    served: float
    refused_share: float
    unanswered: int
    p50: float
    """Of those served; 0 if there were none."""
    p99: float
    refused_p99: float
    reasons: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Result:
    """Everything that `simulate` saw.

    Args:
        outcomes: one for each request, in order of arrival.
        samples: the gate every tenth of a second; empty without a gate.
        load: what was asked.
        busy: seconds in which the worker's CPU (loop) worked.
        ended: when the last request was dealt with.
    """

    outcomes: Sequence[Outcome]
    samples: Sequence[Sample]
    load: Load
    busy: float
    ended: float

    def summary(
        self, begin: float = 0.0, end: float | None = None, *, route: int | None = None
    ) -> Summary:
        """Summarize the requests sent from ``begin`` to ``end`` (to one ``route``)."""
        end = self.load.seconds if end is None else end
        span = end - begin
        chosen = [
            outcome
            for outcome in self.outcomes
            if begin <= outcome.arrived < end and (route is None or outcome.route == route)
        ]
        served = sorted(outcome.latency for outcome in chosen if outcome.status == 200)
        refused = sorted(outcome.latency for outcome in chosen if outcome.status == 503)
        return Summary(
            offered=len(chosen) / span,
            goodput=sum(latency <= IN_TIME for latency in served) / span,
            served=len(served) / span,
            refused_share=len(refused) / max(1, len(chosen)),
            unanswered=len(chosen) - len(served) - len(refused),
            p50=quantile(served, 0.5),
            p99=quantile(served, 0.99),
            refused_p99=quantile(refused, 0.99),
            reasons=Counter(o.reason for o in chosen if o.reason is not None),
        )


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the value below which ``share`` of the ordered values lie; 0 of none."""
    if not ordered:
        return 0.0
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
