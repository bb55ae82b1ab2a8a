"""Who is refused first when not everybody can be served.

Every request has a rank: its class (0 critical, 1 normal, 2 sheddable) plus a place within the
class in [0, 1). A threshold on ranks follows the share that has to be refused, as in WeChat's
DAGOR and Uber's Cinnamon: what ranks at or above it is refused, so the lowest class goes first.

The place is a hash of the user and the minute: a user is refused wholly or not at all, and
whoever is unlucky is so for a minute. Without users, places run through a golden-ratio sequence,
which spreads any share evenly.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from .exchange import Exchange

CLASSES = ("critical", "normal", "sheddable")

MINUTE = 60.0
BINS = 64
"""Steps of the threshold within a class."""

GOLDEN = 0.6180339887498949

MEMORY = 0.97
"""What a window keeps of the ranks seen before: about three seconds at ten windows a second."""

GAIN = 0.5
"""Share added for each share that the law still had to refuse by itself. One would overshoot,
because requests that were read before the threshold moved are refused after it."""

RELAX = 0.002
"""Share given back each quiet window under pressure: slow, so that few users change sides."""

RECOVER = 0.05
"""Share given back each window once the pressure is gone: all of it within two seconds."""

Classify = Callable[[Exchange], str | None]
UserOf = Callable[[Exchange], object]


class Ranking:
    """Ranks requests and keeps the threshold.

    Args:
        classify: returns one of `CLASSES` for a request; anything else means normal.
        user: returns what tells users apart, or ``None`` for nobody; left out = no users.
    """

    def __init__(self, classify: Classify, user: UserOf | None = None) -> None:
        self._classify = classify
        self._user = user
        self._place = 0.0
        self._seen = [0.0] * (BINS * len(CLASSES))
        self.share = 0.0
        """Share of the arrivals that the threshold refuses."""
        self.threshold = float(len(CLASSES))
        self.errors = 0
        """Calls of ``classify`` or ``user`` that raised; their requests count as normal."""

    def rank(self, exchange: Exchange, now: float) -> float:
        """Return the rank of a request, and remember it for the threshold."""
        try:
            level = CLASSES.index(self._classify(exchange) or "normal")
        except ValueError:
            level = 1
        except Exception:
            self.errors += 1
            level = 1
        rank = level + self._placed(exchange, now)
        self._seen[int(rank * BINS)] += 1.0
        return rank

    @property
    def marginal(self) -> int:
        """The class in which the threshold lies: better ones are not for the law to refuse."""
        return min(len(CLASSES) - 1, max(0, int(self.threshold - 1e-9)))

    def update(self, refused: int, arrivals: int, pressed: bool) -> None:
        """End a window.

        Args:
            refused: requests that the law refused by itself, not by rank.
            arrivals: all that arrived in the window.
            pressed: whether the server is overloaded.
        """
        if not pressed and not refused:
            self.share = max(0.0, self.share - RECOVER)
        elif refused:
            self.share = min(0.99, self.share + GAIN * refused / max(1, arrivals))
        else:
            self.share = max(0.0, self.share - RELAX)
        self._seen = [count * MEMORY for count in self._seen]
        self.threshold = self._quantile(1.0 - self.share)

    def _placed(self, exchange: Exchange, now: float) -> float:
        user = None
        if self._user is not None:
            try:
                user = self._user(exchange)
            except Exception:
                self.errors += 1
        if user is None:
            self._place = (self._place + GOLDEN) % 1.0
            return self._place
        text = f"{int(now // MINUTE)}:{user}".encode("utf-8", "surrogatepass")
        return int.from_bytes(hashlib.blake2b(text, digest_size=4).digest()) / 2**32

    def _quantile(self, share: float) -> float:
        """Return the rank below which ``share`` of the requests lies."""
        total = sum(self._seen)
        if total < 1.0:
            return float(len(CLASSES))
        below, wanted = 0.0, share * total
        for bin, count in enumerate(self._seen):
            below += count
            if below >= wanted - 1e-9 and count:
                return (bin + 1) / BINS
        return float(len(CLASSES))
