"""One ask that is under way, wherever it runs: watched from outside, and never waited for."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable


class Flight:
    """An ask, from its start to its end, which may be long after its time was up.

    Args:
        loop: where the monitor waits for it.
        home: the loop it runs in; ``None`` = a thread of its own.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, home: asyncio.AbstractEventLoop | None = None
    ) -> None:
        self.landed: asyncio.Future[None] = loop.create_future()
        self.over = False
        """Whether it has really ended."""
        self.value: object = None
        self.error: BaseException | None = None
        self.cancelled = False
        self._loop = loop
        self._home = home
        self._stop: Callable[[], object] | None = None

    @property
    def hangs(self) -> bool:
        """Whether it goes on, so that a second must not be started beside it."""
        return not self.over and not (self._home is not None and self._home.is_closed())

    def began(self, stop: Callable[[], object]) -> None:
        """Learn how to stop it; that may have been asked for already."""
        self._stop = stop
        if self.cancelled:
            stop()

    def cancel(self) -> None:
        """Ask it to stop; whether it does is its own affair."""
        self.cancelled = True
        stop = self._stop
        if stop is not None:
            with contextlib.suppress(RuntimeError):  # its loop is closed
                stop()

    def end(self, value: object = None, error: BaseException | None = None) -> None:
        """Note the outcome; may be called from any thread."""
        self.value, self.error = value, error
        self.over = True
        self._stop = None
        with contextlib.suppress(RuntimeError):  # nobody waits any more: the monitor has stopped
            self._loop.call_soon_threadsafe(self._land)

    def _land(self) -> None:
        if not self.landed.done():
            self.landed.set_result(None)
