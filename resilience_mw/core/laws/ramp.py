"""How fast the number of requests in flight may grow: a limit before anything is known to be wrong.

A queue behind us shows in latency only once the first of those that queue have ended. Until then,
at five times what a pool can bear, hundreds are let in, and every one of them comes too late. So
growth has to be proven, as in the slow start of TCP: three times as many as were seen to work, and
three times that when they, too, have ended in time. What finds no slot meanwhile waits in our
queue, which is where a healthy burst passes unnoticed.
"""

from __future__ import annotations

from .base import Window

FLOOR = 32.0
"""Requests that need no proof: no queue of so many is long."""
FLOOR_A_SECOND = 320.0
"""... or so many times the unloaded latency: slow handlers are many at once without any load."""
STEP = 3.0
"""So many times what is proven may be tried."""
FLAT = 0.25
"""Share of the unloaded latency by which it may rise without being a sign of a queue."""
GRAIN = 0.01
"""... or so many seconds: no queue that matters hides in less."""
LONGEST_PROOF = 0.5
"""Seconds after which no sign of a queue is a sign of none."""
ENDED = 0.7
"""Share of those who were tried that have to end meanwhile: with a queue behind us, the first to
end are those who found none."""
FADE = 60.0
"""Seconds after which what was proven counts for little."""


class Ramp:
    """Moves ``limit`` ahead of what has been seen to work.

    Args:
        max_limit: requests.
    """

    def __init__(self, max_limit: int) -> None:
        self.limit = float(max_limit)
        self._max_limit = max_limit
        self._proven: float | None = None  # most requests at once that did not queue, fading
        self._tried = 0  # most requests at once when the trial began
        self._ends: float | None = None  # when the trial will have shown whether they queue
        self._done = 0  # requests that ended in it

    def update(self, window: Window, baseline: float | None, excess: float) -> None:
        """Take one window.

        Args:
            window: the window.
            baseline: unloaded latency in seconds; ``None`` = unknown: no growth is suspicious yet.
            excess: seconds by which latency is above it.
        """
        if baseline is None:
            return
        if self._proven is None:
            # Whoever starts under full traffic has let in what there was.
            self._proven = float(window.peak)
        self._proven *= 1.0 - min(1.0, window.length / FADE)
        self._done += len(window.latencies)
        lasts = min(LONGEST_PROOF, baseline)
        if excess > max(GRAIN, FLAT * baseline):
            self._ends = None
        elif self._ends is None:
            self._try(window, lasts)
        elif window.now >= self._ends and self._done >= ENDED * self._tried * lasts / baseline:
            self._proven = max(self._proven, self._tried)
            self._try(window, lasts)
        floor = max(FLOOR, FLOOR_A_SECOND * baseline)
        self.limit = min(self._max_limit, max(floor, STEP * self._proven))

    def _try(self, window: Window, lasts: float) -> None:
        self._tried = window.peak
        self._ends = window.now + lasts
        self._done = 0
