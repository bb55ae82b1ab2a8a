"""What the master and its workers share: whether a stop has begun, and how each worker fares."""

from __future__ import annotations

import contextlib
import mmap
import os
import select

STARTING, SERVING, LEAVING, FORCED = range(4)
"""How far a worker got; only the last is a failure, the others tell a crash from an orderly end."""

_SLOTS = 4096
"""Workers are numbered as they are started, so that only ones this far apart share a slot."""

_STOPPING = _SLOTS
"""Where the master notes that it has told its workers to end."""

_DRAINING = _SLOTS + 1
"""Where it notes that the stop has begun, for threads that gevent's ``poll`` is nothing for."""


class Shared:
    """Made in the master, inherited by every worker, preloaded or not.

    The beginning of a stop is a byte in a pipe that nobody reads: it wakes event loops, selectors
    and greenlets alike, and a worker that is forked later finds it as well.
    """

    def __init__(self) -> None:
        self._readable, self._writable = os.pipe()
        self._workers = mmap.mmap(-1, _SLOTS + 2)

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when the stop begins."""
        return self._readable

    @property
    def draining(self) -> bool:
        """Whether the stop has begun."""
        poll = select.poll()
        poll.register(self._readable, select.POLLIN)
        return bool(poll.poll(0))

    def drain(self) -> None:
        """Begin the stop: in the master, once."""
        self._workers[_DRAINING] = 1
        os.write(self._writable, b"\0")

    def told(self) -> bool:
        """Whether the master has begun the stop, in any thread, and at next to no cost."""
        return self._workers[_DRAINING] == 1

    def stop(self, *, alone: bool) -> None:
        """Note that the workers are about to be told to end: in the master, once.

        Args:
            alone: whether nobody else, such as a master started by SIGUSR2, or systemd, accepts at
                the same sockets.
        """
        self._workers[_STOPPING] = 2 if alone else 1

    @property
    def stopping(self) -> bool:
        """Whether the workers have been told to end.

        A worker that has just been forked still has the master's signal handlers, and misses it.
        """
        return self._workers[_STOPPING] > 0

    @property
    def alone(self) -> bool:
        """Whether the sockets may be closed for everybody by now."""
        return self._workers[_STOPPING] == 2

    def leave_to_master(self) -> None:
        """Close, in a worker, the end that only the master needs.

        So the pipe ends with the master, and its workers do not think themselves ready any more.
        """
        if self._writable >= 0:
            os.close(self._writable)
            self._writable = -1

    def note(self, age: int, state: int) -> None:
        """Write down how far a worker got; being forced is never taken back."""
        slot = age % _SLOTS
        if state == STARTING or self._workers[slot] < state:
            self._workers[slot] = state

    def state(self, age: int) -> int:
        """Return how far a worker got."""
        return self._workers[age % _SLOTS]

    def any_forced(self) -> bool:
        """Whether some worker gave up on requests that were still running."""
        return FORCED in self._workers[:_SLOTS]

    def any_served(self) -> bool:
        """Whether some worker has begun to serve."""
        return any(state >= SERVING for state in self._workers[:_SLOTS])

    def close(self) -> None:
        """Give everything back."""
        for descriptor in (self._readable, self._writable):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self._workers.close()
