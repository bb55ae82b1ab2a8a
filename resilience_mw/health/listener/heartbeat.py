"""Whether an event loop still turns, as seen from another thread."""

from __future__ import annotations

import asyncio
import time

LONGEST_PERIOD = 0.5


class Heartbeat:
    """A timer that notes when its loop last came round.

    Args:
        stuck_after: seconds without a beat that somebody will call stuck; 0 = nobody will.

    Attributes:
        at: when it beat last (monotonic seconds); 0 = it does not.
    """

    def __init__(self, stuck_after: float) -> None:
        self.at = 0.0
        self._period = min(LONGEST_PERIOD, stuck_after / 10)
        self._handle: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def last(self) -> float:
        """When it beat last; 0 = it does not, or its loop has ended, which is not being stuck."""
        loop = self._loop
        return self.at if loop is None or loop.is_running() else 0.0

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Beat on ``loop``, in which it is called, from now on."""
        self.stop()
        if self._period:
            self._loop = loop
            self._beat(loop)

    def stop(self) -> None:
        """Beat no more, which is not the same as being stuck."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        self._loop = None
        self.at = 0.0

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        self.at = time.monotonic()
        self._handle = loop.call_later(self._period, self._beat, loop)
