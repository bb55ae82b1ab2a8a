"""Whether the accept queue deepens.

uvloop accepts one connection a turn. When turns grow long, those that are accepted already are
served soon, again and again, and all others wait where only the depth of that queue can be seen.

With d = depth at the end of a window, n = requests that reached us in it, full windows add up

    evidence = sum of min(1, growth of d / n),    none if d grew by less than n / 4

At rho times the load of new connections d grows by rho - 1 for each that is taken. So a load of two
or more takes two windows, and 1.5 three; a pause of the process is one.
"""

from __future__ import annotations

from .rise import ENOUGH

LITTLE = 0.25
"""Growth for each request served below which there is no evidence: chance brings as much."""


class Deepening:
    """Judges the depth of the accept queue, window by window."""

    def __init__(self) -> None:
        self._depth = 0
        self._evidence = 0.0

    @property
    def steep(self) -> bool:
        """Whether it has deepened for long enough."""
        return self._evidence >= ENOUGH

    def update(self, depth: int, served: int, *, full: bool) -> None:
        """Take one window.

        Args:
            depth: connections that wait to be accepted.
            served: requests that were let in or refused.
            full: whether the loop had no time left.
        """
        growth = (depth - self._depth) / max(1, served)
        self._depth = depth
        self._evidence = self._evidence + min(1.0, growth) if full and growth > LITTLE else 0.0
