"""Windows fed by hand."""

from __future__ import annotations

from collections.abc import Sequence

from resilience_mw.core import Law, Window


def window(
    now: float = 0.0,
    *,
    length: float = 0.1,
    utilization: float = 0.5,
    turns: int = 50,
    inflight: int = 0,
    peak: int | None = None,
    queued: int = 0,
    refused: int = 0,
    arrivals: int | None = None,
    latencies: Sequence[float] = (),
    backlog: int = 0,
    pool_waiting: int = 0,
    overdue: int = 0,
) -> Window:
    """Return a window of a half-busy event loop, changed as asked."""
    return Window(
        now=now,
        length=length,
        utilization=utilization,
        turns=turns,
        inflight=inflight,
        peak=inflight if peak is None else peak,
        queued=queued,
        refused=refused,
        arrivals=len(latencies) + refused if arrivals is None else arrivals,
        latencies=latencies,
        backlog=backlog,
        pool_waiting=pool_waiting,
        overdue=overdue,
    )


class Feeder:
    """Feeds windows one after the other.

    Args:
        law: gets them.
        now: when the first begins.
    """

    def __init__(self, law: Law, now: float = 100.0) -> None:
        self.law = law
        self.now = now

    def feed(self, seconds: float, length: float = 0.1, **fields: object) -> list[int]:
        """Feed equal windows for ``seconds`` and return the limits."""
        limits = []
        for _ in range(round(seconds / length)):
            self.now += length
            limits.append(self.law.update(window(self.now, length=length, **fields)))  # type: ignore[arg-type]
        return limits
