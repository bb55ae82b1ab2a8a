"""Counts how the requests of one stack under one rule go, and feeds the comparison of the two."""

from __future__ import annotations

from collections.abc import Callable

from .comparison import Comparison
from .histogram import Histogram
from .snapshot import VariantSnapshot


class Meter:
    """The counts of one variant.

    A driver calls `begin`, then one of `answered`, `failed` and `left`, then perhaps `broke`.
    Where there are threads it holds a lock.

    Args:
        new: which of the two stacks it is.
        comparison: told of every request that is a sample; ``None`` = nobody compares.
        look: called when there is something to look at in the comparison.
    """

    __slots__ = (
        "_comparison",
        "_histogram",
        "_look",
        "_new",
        "errors",
        "fallbacks",
        "late",
        "refusals",
        "requests",
    )

    def __init__(
        self,
        new: bool,
        comparison: Comparison | None = None,
        look: Callable[[float], object] | None = None,
    ) -> None:
        self._new = new
        self._comparison = comparison
        self._look = look
        self._histogram = Histogram()
        self.requests = self.errors = self.refusals = self.late = self.fallbacks = 0

    def begin(self, now: float) -> None:
        """Count a request that is given to the stack."""
        self.requests += 1
        if self._comparison is not None:
            self._comparison.begin(self._new, now)

    def answered(self, status: int, began: float, now: float, *, busy: bool, late: bool) -> None:
        """Take the start of a response.

        Args:
            status: of the response.
            began: when the stack got the request (monotonic seconds).
            now: when the response started.
            busy: it asks the client to come later (``Retry-After``).
            late: the request's deadline had passed.
        """
        if status >= 429 and (status == 429 or (status == 503 and busy)) and not late:
            self.refusals += 1
            if self._comparison is not None:
                self._comparison.forget(self._new, began)
            return
        self._ended(status >= 500, late, began, now)

    def failed(self, began: float, now: float, *, late: bool) -> None:
        """Take the end of a request that was not answered: an exception, or its deadline."""
        self._ended(True, late, began, now)

    def left(self, began: float, now: float) -> None:
        """Take the end of a request whose client left before the response started.

        How long it has waited says something of the stack that kept it waiting, so it is a sample
        of the comparison; of the answer nothing is known.
        """
        if self._comparison is not None:
            self._sample(False, False, began, now)

    def broke(self, now: float) -> None:
        """Take the failure of a response that had started: once more, as an error."""
        self.errors += 1
        if self._comparison is not None:
            self._comparison.begin(self._new, now)
            self._sample(True, False, now, now)

    def _ended(self, failed: bool, late: bool, began: float, now: float) -> None:
        if failed or late:
            self.errors += 1
            self.late += late
        self._histogram.add(now - began, now)
        if self._comparison is not None:
            self._sample(failed, late, began, now)

    def _sample(self, failed: bool, late: bool, began: float, now: float) -> None:
        comparison = self._comparison
        if (
            comparison is not None
            and comparison.record(self._new, failed, now - began, now, late)
            and self._look is not None
        ):
            self._look(now)

    def snapshot(self) -> VariantSnapshot:
        """Return the counts and the quantiles."""
        p50, p95 = self._histogram.quantiles(0.5, 0.95)
        return VariantSnapshot(
            requests=self.requests,
            errors=self.errors,
            refusals=self.refusals,
            late=self.late,
            fallbacks=self.fallbacks,
            p50=p50,
            p95=p95,
        )
