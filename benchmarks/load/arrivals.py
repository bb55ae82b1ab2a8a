"""When requests are meant to be sent."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

Spacing = Literal["constant", "poisson"]


class Phase(NamedTuple):
    """A stretch of load: `rate` requests a second for `seconds`."""

    rate: float
    seconds: float


def intended_times(
    phases: Sequence[Phase], spacing: Spacing = "constant", seed: int = 1
) -> Iterator[float]:
    """Yield the send times of all phases, in seconds from the start, in ascending order.

    `poisson` draws exponential gaps with mean 1 / rate: independent users, so that short bursts
    happen as they do in production. The same `seed` gives the same times.
    """
    draw = random.Random(seed)
    begin = 0.0
    for rate, seconds in phases:
        end = begin + seconds
        if spacing == "constant":
            yield from (begin + i / rate for i in range(round(rate * seconds)))
        else:
            due = begin + draw.expovariate(rate)
            while due < end:
                yield due
                due += draw.expovariate(rate)
        begin = end
