"""What every loop meter looks like, and how two readings become a utilization."""

from __future__ import annotations

import time
from typing import ClassVar, NamedTuple


class LoopReading(NamedTuple):
    """Cumulative counters of one loop: subtract two readings to get a window.

    Attributes:
        at: monotonic seconds of the reading.
        busy: seconds since attach in which the loop was not waiting for events.
        turns: loop turns since attach; stays 0 where the loop does not tell.
    """

    at: float
    busy: float
    turns: int


def utilization(before: LoopReading, after: LoopReading) -> float:
    """Return the share of the time between two readings that the loop was busy, in [0, 1].

    This is Node's event-loop utilization: 1 - idle / elapsed. An empty window reads 0.
    """
    elapsed = after.at - before.at
    if elapsed <= 0.0:
        return 0.0
    return min(1.0, max(0.0, (after.busy - before.busy) / elapsed))


class LoopMeter:
    """Base of the meters that `loop.attach` hands out, one per loop, counted by its users.

    A meter never keeps its loop alive. Once detached, or once the loop is closed, `busy` and
    `turns` stay at their last values: a window after that reads as idle, not as overloaded.
    """

    source: ClassVar[str]
    __slots__ = ("__weakref__", "_last", "_since", "_users")

    def __init__(self) -> None:
        self._users = 0
        self._since = time.monotonic()
        self._last = LoopReading(self._since, 0.0, 0)

    def read(self, now: float) -> LoopReading:
        """Return the counters at `now`; a callback that runs counts as busy up to `now`."""
        raise NotImplementedError

    def turn_started(self) -> float | None:
        """Return the earliest moment at which what runs now can have been read by the loop.

        Data that the loop read and handed to a task had arrived by the start of the turn before
        this one, so a request has waited at least since then. `None`: the loop does not tell.
        """
        return None

    def this_turn_started(self) -> float | None:
        """Return when the turn that runs now started.

        This is the bound for work handed over from another thread, which may have come late in the
        turn before. `None`: the loop does not tell.
        """
        return self.turn_started()

    def retain(self) -> None:
        """Count one more user."""
        self._users += 1

    def detach(self) -> None:
        """Give the meter back; the last user's call restores the loop. More calls do nothing."""
        if self._users == 0:
            return
        if self._users == 1:
            self._last = self.read(time.monotonic())
            self._release()
        self._users -= 1

    @property
    def attached(self) -> bool:
        """Whether anybody still uses this meter."""
        return self._users > 0

    def _release(self) -> None:
        """Undo what this meter did to the loop."""

    def _frozen(self, now: float) -> LoopReading:
        return self._last._replace(at=now)
