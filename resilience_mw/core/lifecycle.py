"""From starting to stopped, in one direction, and only from there to another start."""

from __future__ import annotations

from enum import IntEnum


class State(IntEnum):
    """How far along its life a process is."""

    STARTING = 0
    READY = 1
    DRAINING = 2
    STOPPED = 3


class Lifecycle:
    """Holds a `State` that only moves forward, until a new life begins."""

    __slots__ = ("__weakref__", "state")

    def __init__(self, state: State = State.STARTING) -> None:
        self.state = state

    def advance(self, state: State) -> bool:
        """Move to ``state``; returns False, changing nothing, if that would be a step back."""
        if state <= self.state:
            return False
        self.state = state
        return True

    def restart(self) -> bool:
        """Begin anew after the end: one process may run one app several times, as tests do.

        Returns False, changing nothing, unless the state is ``STOPPED``.
        """
        if self.state is not State.STOPPED:
            return False
        self.state = State.STARTING
        return True

    @property
    def started(self) -> bool:
        """Whether start-up has completed (it stays so while draining)."""
        return self.state >= State.READY

    @property
    def ready(self) -> bool:
        """Whether traffic should be sent here."""
        return self.state is State.READY
