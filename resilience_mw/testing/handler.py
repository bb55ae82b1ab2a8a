"""What a request does once it is admitted: a row of segments.

Each function returns segments, and segments are joined with ``+`` and repeated with ``*``:

    >>> handler = compute(0.002) + wait(0.05) + compute(0.002)
    >>> round(handler.cpu, 3)
    0.004
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from random import Random

Duration = float | Callable[[Random], float]
"""Seconds, or a function that draws them."""


class Kind(IntEnum):
    """What a segment occupies while it lasts."""

    COMPUTE = 0
    """The event loop, or the thread under the GIL; nothing else runs meanwhile."""
    BREATHE = 1
    """Nothing: the handler lets others run once and goes on."""
    WAIT = 2
    """Nothing but time: a call to something that has no limit of its own."""
    POOL = 3
    """A connection of a named downstream pool, in order of request."""
    THREAD_WAIT = 4
    """A thread of the framework's pool, blocked without the GIL."""
    THREAD_COMPUTE = 5
    """A thread of the framework's pool, computing under the GIL."""
    ANSWER = 6
    """Nothing: the response starts here, and the rest of the handler streams."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One part of a handler."""

    kind: Kind
    seconds: Duration = 0.0
    pool: str = ""


class Handler(tuple[Segment, ...]):
    """An immutable row of segments."""

    __slots__ = ()

    def __add__(self, other: tuple[Segment, ...]) -> Handler:  # type: ignore[override]
        return Handler((*self, *other))

    def __mul__(self, times: int) -> Handler:  # type: ignore[override]
        return Handler(tuple(self) * times)

    @property
    def cpu(self) -> float:
        """Mean seconds of the one CPU (or the GIL) that it needs."""
        return self.seconds(Kind.COMPUTE, Kind.THREAD_COMPUTE)

    @property
    def alone(self) -> float:
        """Mean seconds from start to end when nothing else runs."""
        return self.seconds(*Kind)

    def seconds(self, *kinds: Kind, pool: str | None = None) -> float:
        """Return the mean seconds spent in segments of ``kinds`` (of one ``pool``)."""
        return sum(
            mean(segment.seconds)
            for segment in self
            if segment.kind in kinds and (pool is None or segment.pool == pool)
        )


def mean(seconds: Duration) -> float:
    """Return the mean of a duration; of a drawn one, the mean of 4000 draws."""
    if not callable(seconds):
        return seconds
    random = Random(1)
    return sum(seconds(random) for _ in range(4000)) / 4000


def compute(seconds: Duration) -> Handler:
    """Compute for ``seconds`` without letting anything else run (on threads: without the GIL)."""
    return Handler((Segment(Kind.COMPUTE, seconds),))


def breathe() -> Handler:
    """Let everything else that is ready run once, as ``await asyncio.sleep(0)`` does."""
    return Handler((Segment(Kind.BREATHE),))


def wait(seconds: Duration) -> Handler:
    """Wait for ``seconds`` without occupying anything."""
    return Handler((Segment(Kind.WAIT, seconds),))


def pool(name: str, seconds: Duration) -> Handler:
    """Hold one connection of the worker's pool ``name`` for ``seconds``."""
    return Handler((Segment(Kind.POOL, seconds, name),))


def thread_wait(seconds: Duration) -> Handler:
    """Block a thread of the framework's pool for ``seconds`` (a sync endpoint that waits)."""
    return Handler((Segment(Kind.THREAD_WAIT, seconds),))


def thread_compute(seconds: Duration) -> Handler:
    """Compute for ``seconds`` in a thread of the framework's pool (a sync endpoint)."""
    return Handler((Segment(Kind.THREAD_COMPUTE, seconds),))


def answer() -> Handler:
    """Start the response here: what follows streams, and the client has its answer already."""
    return Handler((Segment(Kind.ANSWER),))
