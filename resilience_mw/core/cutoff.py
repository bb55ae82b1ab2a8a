"""Where the line runs between the ranks that are let in and those that are refused.

Two things have to be known: how much can be served, and how much of what importance arrives.

*Capacity* is what is being completed, a second. To find out whether more is possible, and to work
off what queues, the line allows more or less than that, depending on how long requests wait:

    waits, in multiples of what is allowed:  0     1/4    1/2   1    3/2   5/2   6 and more
    let in, in multiples of capacity:        1.3   1.05   1     0.9  0.8   0.3   0.1

so waits settle near a half, and there is nothing left to refuse for another reason than rank.

*Arrivals* are counted by class, along the time at which requests were sent, not seen: while a queue
builds up before the server, few of those that arrive are seen, and while it is worked off, many.

Sources: a threshold on ranks that follows a share: DAGOR (Zhou et al., SoCC 2018), Uber's Cinnamon.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from .ranking import CLASSES

LINE = ((0.0, 1.3), (0.25, 1.05), (0.5, 1.0), (1.0, 0.9), (1.5, 0.8), (2.5, 0.3), (6.0, 0.1))
"""The table above."""
MEMORY = 1.0
"""Seconds from which capacity and arrivals are taken."""
RECENT = 0.5
"""Seconds from which capacity is taken at the outset of an overload."""
FEW, WINDOWS = 10, 100
"""Completions that make a rate: where they take longer, more is remembered, up to 100 windows."""
SOON = 0.3
"""Seconds after which a jump of the load is noticed: then nothing is remembered."""
JUMP = 0.25
"""What is a jump: this share, and four standard deviations of what chance does, besides."""
SHORT = 0.25
"""Waits that do not tell that all is being completed that can be."""
SPARE, TENTH = 1.25, 0.1
"""Factor on capacity for so many seconds with time to spare."""
REST = 1.0
"""Seconds without anybody refused or waiting after which the line is lifted."""


class Flow(NamedTuple):
    """One window of a gate."""

    length: float
    """Seconds."""
    arrivals: int
    """Requests that reached the gate."""
    done: int
    """Requests that gave their slot back."""
    waited: float | None
    """Seconds that the last request had waited; ``None`` if nobody measured."""
    pressed: bool
    """Whether anybody was refused, or waits."""
    spare: bool
    """Whether more could have been served."""


class Cutoff:
    """The line, moved with every window, and for every request by how long requests wait."""

    memory = MEMORY

    def __init__(self) -> None:
        self.active = False
        """Whether ranks decide; if not, everybody is let in as far as ranks are concerned."""
        self.capacity = 0.0
        """Requests a second that can be served, while active."""
        self.done = 0.0
        """Completions a second of late."""
        self.rates = [0.0] * len(CLASSES)
        """Arrivals a second by class; 0 until ranks were counted."""
        self._counts = [0.0] * len(CLASSES)
        self._past: deque[tuple[float, int]] = deque(maxlen=WINDOWS)
        self._soon = 0.0  # arrivals a second of late
        self._catching_up = 0.0  # seconds for which they stand for all
        self._waited: float | None = None
        self._sum = self._longest = 0.0  # of the delays in this window
        self._judged = 0  # how many they are
        self._calm = 0.0

    @property
    def arriving(self) -> float:
        """Arrivals a second, of all classes."""
        return sum(self.rates)

    def count(self, rank: float) -> None:
        """Take the rank of a request that arrives."""
        self._counts[int(rank)] += 1.0

    def start(self) -> bool:
        """Let ranks decide from now on, if enough is known; returns whether they do."""
        if not self.active and self.done > 0.0 and self.arriving > 0.0:
            self.active = True
            self.capacity = self.done
            self._calm = 0.0
        return self.active

    def line(self, delay: float) -> float:
        """Return the rank from which on requests are refused.

        Args:
            delay: how long requests wait, in multiples of what is allowed.
        """
        self._sum += delay
        self._judged += 1
        if delay > self._longest:
            self._longest = delay
        return self._line(delay)

    def _line(self, delay: float) -> float:
        return self.below(self.capacity * between(LINE, delay))

    def below(self, rate: float) -> float:
        """Return the rank below which ``rate`` requests a second arrive."""
        for level, arriving in enumerate(self.rates):
            if rate < arriving:
                return level + rate / arriving
            rate -= arriving
        return float(len(CLASSES))

    def update(self, flow: Flow) -> None:
        """End a window."""
        self._past.append((flow.length, flow.done))
        self.done = self._completions(RECENT)
        jumped = self._listen(flow)
        if not self.active:
            return
        self._move(flow, jumped, self._sum / max(1, self._judged), self._longest)
        self._sum = self._longest = 0.0
        self._judged = 0
        self._calm = 0.0 if flow.pressed else self._calm + flow.length
        self.active = self._calm < REST

    def _move(self, flow: Flow, jumped: bool, delay: float, longest: float) -> None:
        """Learn from a window in which requests waited so long on average, and at most."""
        if flow.spare:
            most = between(LINE, 0.0) * self.arriving
            grown = self.capacity * SPARE ** (flow.length / TENTH)
            self.capacity = max(self.capacity, min(grown, most))
        elif delay > SHORT or self.done > self.capacity:
            # Where nobody waits, less was done because less was asked for.
            self.capacity += min(1.0, flow.length / MEMORY) * (self.done - self.capacity)

    def _completions(self, memory: float) -> float:
        """Return completions a second, of the last ``memory`` seconds or of `FEW` completions."""
        seconds, number = 0.0, 0
        for length, done in reversed(self._past):
            seconds += length
            number += done
            if seconds >= memory and number >= FEW:
                break
        return number / seconds

    def _listen(self, flow: Flow) -> bool:
        """Take the arrivals of a window; returns whether the load has jumped."""
        span, before, self._waited = flow.length, self._waited, flow.waited
        if before is not None and flow.waited is not None:
            span = max(0.1 * span, span - (flow.waited - before))
        known = sum(self._counts)
        if not known:
            return False
        rate, total = flow.arrivals / span, self.arriving
        self._soon += min(1.0, span / SOON) * (rate - self._soon)
        chance = math.sqrt(max(total, self._soon) / (2.0 * SOON))
        jumped = abs(self._soon - total) > JUMP * total + 4.0 * chance
        if jumped:
            self._catching_up = 3.0 * SOON
        if self._catching_up > 0.0:
            self._catching_up -= span
            total = self._soon
        else:
            total += min(1.0, span / self.memory) * (rate - total)
        self.rates = [total * count / known for count in self._counts]
        self._counts = [count * (1.0 - min(0.9, flow.length / 3.0)) for count in self._counts]
        return jumped


def between(points: Sequence[tuple[float, float]], at: float) -> float:
    """Return the value at ``at`` of the line through ``points``; the last one's beyond them."""
    for (left, low), (right, high) in pairwise(points):
        if at < right:
            return low + (high - low) * (at - left) / (right - left)
    return points[-1][1]
