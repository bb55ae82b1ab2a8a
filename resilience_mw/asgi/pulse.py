"""One coarse tick a guard, instead of timers a request."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from ..signals.lag import Lag

PERIOD = 0.025
"""Seconds between two beats. A shared tick costs a request about a tenth of a timer of its own;
its price is that a deadline fires up to this much late."""

REST_AFTER = 2.0
"""Seconds without work after which the pulse stops, so that an idle worker does not wake."""


class Pulse:
    """Calls ``beat(now)`` every `PERIOD` seconds for as long as there is work.

    Args:
        beat: does what is due and returns whether there is work.
        lag: told how late each beat comes.
    """

    def __init__(self, beat: Callable[[float], bool], lag: Lag) -> None:
        self._beat = beat
        self._lag = lag
        self._handle: asyncio.TimerHandle | None = None
        self._worked_at = 0.0
        self.resting = True
        """True = not beating; whoever brings work calls `start`."""

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Beat on ``loop`` from now on; a loop it beat on before is left alone."""
        self.stop()
        self.resting = False
        self._worked_at = time.monotonic()
        self._schedule(loop, self._worked_at)

    def stop(self) -> None:
        """Stop beating."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        self.resting = True
        self._lag.stop()

    def _schedule(self, loop: asyncio.AbstractEventLoop, now: float) -> None:
        self._handle = loop.call_later(PERIOD, self._once, loop, now + PERIOD)

    def _once(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        now = time.monotonic()
        self._lag.tick(due, now)
        if self._beat(now):
            self._worked_at = now
        elif now - self._worked_at > REST_AFTER:
            self.stop()
            return
        self._schedule(loop, now)
