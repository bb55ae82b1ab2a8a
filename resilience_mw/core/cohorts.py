"""What each cohort of users asks for, remembered across shuffles."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

from .ranking import CLASSES, COHORTS

HALF_LIFE = 30.0
"""Seconds after which what was asked for counts half."""


class Cohorts:
    """Counts requests by class and cohort, and says where a line lets in a given share of them."""

    def __init__(self, places: Sequence[int]) -> None:
        self._places = places
        self._counts = [0.0] * (len(CLASSES) * COHORTS)
        self._sums: Sequence[float] = ()
        self._age = 0.0

    def count(self, rank: float) -> None:
        """Take a request."""
        self._counts[int(rank * COHORTS)] += 1.0

    def age(self, seconds: float) -> None:
        """Let time pass."""
        self._age += seconds
        if self._age >= HALF_LIFE:
            self._age = 0.0
            self._counts = [count / 2 for count in self._counts]

    def shuffled(self, places: Sequence[int]) -> bool:
        """Follow the cohorts to their new ``places``; returns whether they have moved."""
        if places is self._places:
            return False
        counts = list(self._counts)
        for old, new in zip(self._places, places, strict=True):
            for first in range(0, len(counts), COHORTS):
                counts[first + new] = self._counts[first + old]
        self._places, self._counts = places, counts
        return True

    def fix(self) -> None:
        """Have `line` answer from what is known now, until this is called again."""
        self._sums = list(accumulate(self._counts))

    def line(self, share: float) -> float:
        """Return the rank below which no more than ``share`` of the requests were."""
        sums = self._sums
        if not sums or share >= 1.0:
            return float(len(CLASSES))
        return bisect_left(sums, share * sums[-1]) / COHORTS
