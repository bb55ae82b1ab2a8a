"""How late a loop is, from any periodic callback that somebody runs anyway."""

from __future__ import annotations


class Lag:
    """Lateness of a tick of `period` seconds, fed by whoever runs the tick.

    It is a lower bound: the queue behind a tick is usually longer than the tick was late.

    Example:
        >>> lag = Lag(0.025)
        >>> lag.tick(due=10.0, now=10.2)
        >>> round(lag.read(now=10.21), 2)
        0.2
    """

    __slots__ = ("_late", "_next", "_period")

    def __init__(self, period: float) -> None:
        self._period = period
        self._late = 0.0
        self._next: float | None = None

    def tick(self, due: float, now: float) -> None:
        """Note that the tick due at `due` ran at `now`; the next is due a period from now."""
        self._late = max(0.0, now - due)
        self._next = now + self._period

    def stop(self) -> None:
        """Note that no tick is due any more, so that resting does not look like lag."""
        self._late = 0.0
        self._next = None

    def read(self, now: float) -> float:
        """Return the lateness in seconds: of the last tick, or of the one overdue at `now`."""
        if self._next is None:
            return 0.0
        return max(self._late, now - self._next)
