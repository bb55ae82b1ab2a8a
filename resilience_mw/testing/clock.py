"""A clock that moves only when told."""

from __future__ import annotations


class FakeClock:
    """Stands in for `time.monotonic` in tests.

    Args:
        now: first reading in seconds.

    Example:
        >>> clock = FakeClock(10.0)
        >>> clock.advance(0.5)
        10.5
        >>> clock()
        10.5
    """

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """Return the current reading in seconds."""
        return self.now

    def advance(self, seconds: float) -> float:
        """Let ``seconds`` pass and return the new reading.

        Raises:
            ValueError: ``seconds`` is negative.
        """
        if seconds < 0:
            raise ValueError(f"a monotonic clock cannot go back, got {seconds!r} seconds")
        self.now += seconds
        return self.now
