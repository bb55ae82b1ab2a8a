"""How steeply the wait rises: an overload that shows itself before its queue has become long.

Of rho times what can be served, the wait of whoever is served next rises by 1 - 1/rho of the time
that passes. A burst at 80 % of the load does so for one window, or two.
"""

from __future__ import annotations

STEEP = 0.4
"""Share of the time that passes by which the wait rises; 1.67 times the load."""
ENOUGH = 1.4
"""Evidence, the sum of those shares over windows in a row, that is no burst: three windows of twice
the load, two of four times. A pause of the process is one, whatever its length. `deepening` asks
for as much."""
LEAST = 0.01
"""Share of the requests that are always let in."""


class Rise:
    """Follows the least wait from window to window."""

    def __init__(self) -> None:
        self._last = 0.0
        self._evidence = 0.0
        self._risen = 0.0  # seconds, in those
        self._lasted = 0.0  # seconds

    def update(self, least: float | None, length: float) -> None:
        """Take the least wait seen in a window of ``length`` seconds, if any was seen."""
        if least is None:
            return
        risen, self._last = least - self._last, least
        if risen >= STEEP * length:
            self._evidence += min(1.0, risen / length)
            self._risen += risen
            self._lasted += length
        else:
            self._evidence = self._risen = self._lasted = 0.0

    @property
    def steep(self) -> bool:
        """Whether it has risen steeply for long enough."""
        return self._evidence >= ENOUGH

    def above(self, wait: float) -> bool:
        """Whether it is steep, and above ``wait`` seconds by now."""
        return self.steep and self._last > wait

    @property
    def share(self) -> float:
        """What part of those who come can be served, 1/rho, as far as a steep rise tells."""
        return min(1.0, max(LEAST, 1.0 - self._risen / self._lasted))
