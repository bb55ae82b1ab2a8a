"""How important a request is, and whose turn it is to be unlucky.

Every request has a rank, the smaller the better: its class (0 critical, 1 normal, 2 sheddable)
plus a place within the class in [0, 1).

Users are hashed into cohorts, and the cohorts are shuffled every minute: a place is that of the
user's cohort. Whoever refuses by rank therefore refuses a user wholly or not at all, and whoever is
unlucky is so for a minute, in all workers of a host alike. Without users, places run through a
golden-ratio sequence, which spreads any share evenly.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from random import Random

from .exchange import Exchange

CLASSES = ("critical", "normal", "sheddable")
NORMAL = 1

COHORTS = 256
MINUTE = 60.0
GOLDEN = 0.6180339887498949

LONGEST = 256
"""Characters of a user that count: clients may choose them, and hashing takes time."""

Classify = Callable[[Exchange], str | None]
UserOf = Callable[[Exchange], object]


class Ranking:
    """Ranks requests.

    Args:
        classify: returns one of `CLASSES` for a request, or ``None`` for normal.
        user: returns what tells users apart, or ``None`` for nobody; left out = no users.
    """

    def __init__(self, classify: Classify, user: UserOf | None = None) -> None:
        self._classify = classify
        self._user = user
        self._place = 0.0
        self._minute = -1
        self.places: Sequence[int] = range(COHORTS)
        """Of each cohort in the minute of the last request, from 0."""
        self.errors = 0
        """Calls of ``classify`` or ``user`` that raised or returned nonsense. Their requests count
        as normal, and as nobody's."""

    @property
    def sticky(self) -> bool:
        """Whether users keep their places for a minute."""
        return self._user is not None

    def rank(self, exchange: Exchange, now: float) -> float:
        """Return the rank of a request, in [0, 3); never raises an `Exception`."""
        return self._level(exchange) + self._placed(exchange, now)

    def _level(self, exchange: Exchange) -> int:
        try:
            name = self._classify(exchange)
            return NORMAL if name is None else CLASSES.index(name)
        except Exception:
            self.errors += 1
            return NORMAL

    def _placed(self, exchange: Exchange, now: float) -> float:
        if self._user is not None:
            minute = int(now // MINUTE)
            if minute != self._minute:
                self._minute = minute
                self.places = Random(minute).sample(range(COHORTS), COHORTS)
            try:
                user = self._user(exchange)
                if user is not None:
                    return self.places[_cohort(user)] / COHORTS
            except Exception:
                self.errors += 1
        self._place = (self._place + GOLDEN) % 1.0
        return self._place


def _cohort(user: object) -> int:
    kind = type(user)
    if kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__:
        # An address in memory: the same user would be somebody else in the next request.
        raise TypeError(f"a user must have a text of its own, got a {kind.__name__}")
    text = str(user)
    if len(text) > LONGEST:
        text = text[: LONGEST // 2] + text[-LONGEST // 2 :]
    # Not `hash`, which differs from worker to worker.
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=1).digest()[0]
