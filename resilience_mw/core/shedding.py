"""Not ready while too much is refused: with hysteresis, so that one burst does not count twice.

It looks at the requests of the last `seconds`, in tenths. While the share refused is at least
`share`, and at least `LEAST` requests came, it is time to send them elsewhere; when it has fallen
below half of that, it is over. Whoever is sent nothing refuses nothing, so it is over at the
latest `seconds` after the last request.
"""

from __future__ import annotations

from collections import deque

LEAST = 10
"""Requests below which a share says nothing."""

PARTS = 10


class Shedding:
    """Tells from counts whether more is refused than another instance should watch.

    Args:
        share: of the requests, 0 to 1.
        seconds: over how long.
    """

    def __init__(self, share: float, seconds: float) -> None:
        self.share = share
        self.seconds = seconds
        self.shedding = False
        self._samples: deque[tuple[float, int, int]] = deque()

    @property
    def pause(self) -> float:
        """Seconds from one sample to the next."""
        return self.seconds / PARTS

    def sample(self, now: float, admitted: int, refused: int) -> bool:
        """Take the counts since start; returns whether too much is refused."""
        samples = self._samples
        samples.append((now, admitted, refused))
        # The oldest kept is the newest from before the window, or its first.
        while len(samples) > 1 and samples[1][0] <= now - self.seconds:
            samples.popleft()
        _, admitted_before, refused_before = samples[0]
        refused -= refused_before
        asked = admitted - admitted_before + refused
        if self.shedding:
            self.shedding = asked > 0 and refused >= self.share / 2 * asked
        elif asked >= LEAST:
            self.shedding = refused >= self.share * asked
        return self.shedding
