"""So many failures in a row, so many passes in a row."""

from __future__ import annotations


class Hysteresis:
    """Turns answers into a state that does not flap.

    The first answer counts at once, whatever it is: there is no state before it to keep.

    Args:
        fall: failures in a row that turn passing into failing.
        rise: passes in a row that turn failing into passing.
    """

    __slots__ = ("_fall", "_rise", "_row", "passing")

    def __init__(self, fall: int, rise: int) -> None:
        self.passing: bool | None = None
        self._fall, self._rise = fall, rise
        self._row = 0  # answers in a row that speak against the state

    def observe(self, passed: bool) -> bool:
        """Take an answer; returns whether the state has turned."""
        if passed is self.passing:
            self._row = 0
            return False
        self._row += 1
        if self.passing is not None and self._row < (self._rise if passed else self._fall):
            return False
        self.passing = passed
        self._row = 0
        return True
