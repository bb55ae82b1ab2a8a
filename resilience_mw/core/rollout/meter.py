"""Counts how the requests of one stack under one rule go, and feeds the comparison of the two."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import inf
from typing import Protocol

from .comparison import Comparison
from .snapshot import VariantSnapshot

RECENT = 1000
"""Requests whose latencies are remembered for the quantiles."""


class Begun(Protocol):
    """A request that a stack has got."""

    began: float
    """When (monotonic seconds)."""


class Meter:
    """The counts of one variant.

    A driver puts a request among those that are `running` and calls `look` if it is time; when the
    response starts, or will never do, it takes the request out and calls `answered`, `failed` or
    `left`; then perhaps `broke`. Where there are threads it holds a lock at each call.

    Args:
        new: which of the two stacks it is.
        comparison: told of every request that is a sample; ``None`` = nobody compares.
        look: called when there is something to look at in the comparison.
    """

    __slots__ = (
        "_comparison",
        "_latencies",
        "_new",
        "errors",
        "fallbacks",
        "late",
        "look",
        "look_at",
        "refusals",
        "requests",
        "running",
    )

    def __init__(
        self,
        new: bool,
        comparison: Comparison | None = None,
        look: Callable[[float], object] = bool,
    ) -> None:
        self._new = new
        self._comparison = comparison
        self.look = look
        self.look_at = inf if comparison is None else comparison.edge
        """When to `look`, also if nothing ends until then (monotonic seconds)."""
        self.running: set[Begun] | None = None if comparison is None else set()
        """The requests without an answer yet; ``None`` = nobody asks for them."""
        self._latencies: deque[float] = deque(maxlen=RECENT)
        self.requests = self.errors = self.refusals = self.late = self.fallbacks = 0

    def answered(self, status: int, began: float, now: float, late: bool, busy: bool) -> None:
        """Take the start of a response.

        Args:
            status: of the response.
            began: when the stack got the request (monotonic seconds).
            now: when the response started.
            late: the request's deadline had passed.
            busy: it asks the client to come later (``Retry-After``).
        """
        self.requests += 1
        if status >= 429 or late:
            if (status == 429 or (status == 503 and busy)) and not late:
                self.refusals += 1
                return
            failed = status >= 500
            self.errors += failed or late
            self.late += late
        else:
            failed = False
        seconds = now - began
        self._latencies.append(seconds)
        comparison = self._comparison
        if comparison is not None and comparison.record(self._new, failed, seconds, now, late):
            self.look(now)

    def failed(self, began: float, now: float, late: bool) -> None:
        """Take the end of a request that was not answered: an exception, or its deadline."""
        self.answered(500, began, now, late, False)

    def left(self, began: float, now: float) -> None:
        """Take the end of a request whose client left before the response started.

        How long it has waited says something of the stack that kept it waiting, so it is a sample
        of the comparison; of the answer nothing is known.
        """
        self.requests += 1
        comparison = self._comparison
        if comparison is not None and comparison.record(self._new, False, now - began, now):
            self.look(now)

    def broke(self, now: float) -> None:
        """Take the failure of a response that had started: once more, as an error."""
        self.errors += 1
        comparison = self._comparison
        if comparison is not None and comparison.record(self._new, True, 0.0, now):
            self.look(now)

    def snapshot(self) -> VariantSnapshot:
        """Return the counts and the quantiles."""
        latencies = sorted(self._latencies)
        p50, p95 = (
            latencies[int(share * (len(latencies) - 1) + 0.5)] if latencies else None
            for share in (0.5, 0.95)
        )
        return VariantSnapshot(
            requests=self.requests,
            errors=self.errors,
            refusals=self.refusals,
            late=self.late,
            fallbacks=self.fallbacks,
            p50=p50,
            p95=p95,
        )
