"""Who asks, how often, and for how long they wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Open-loop clients: they send when they would, whatever the server does.

    Args:
        steps: ``(seconds, requests a second)``, one after the other.
        poisson: arrivals at random, as independent users make them; else evenly spaced.
        new_connections: a connection for every request; else on connections that are open.
        patience: seconds until a client without an answer leaves.
        shares: relative frequency of each handler, where several are given.
        seed: same seed, same arrivals.
    """

    steps: Sequence[tuple[float, float]]
    poisson: bool = True
    new_connections: bool = False
    patience: float = 5.0
    shares: Sequence[float] = (1.0,)
    seed: int = 1

    @property
    def seconds(self) -> float:
        """How long clients send."""
        return sum(seconds for seconds, _ in self.steps)

    def rate(self, begin: float, end: float) -> float:
        """Return the mean rate meant for that time, in requests a second."""
        at = asked = 0.0
        for seconds, rate in self.steps:
            asked += rate * max(0.0, min(end, at + seconds) - max(begin, at))
            at += seconds
        return asked / (end - begin)

    def arrivals(self) -> list[float]:
        """Return when each request is sent, in seconds from the start."""
        random = Random(self.seed)
        begin = 0.0
        times: list[float] = []
        for seconds, rate in self.steps:
            end = begin + seconds
            if rate > 0:
                gap = 1.0 / rate
                at = begin + (random.expovariate(rate) if self.poisson else gap / 2)
                while at < end:
                    times.append(at)
                    at += random.expovariate(rate) if self.poisson else gap
            begin = end
        return times
