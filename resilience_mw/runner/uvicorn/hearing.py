"""The signals of one process, and what ends it if its event loop does not hear them."""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import logging
import signal
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Generator
from types import FrameType
from typing import Any

import uvicorn

from ..drain import MARGIN, Progress
from .config import UvicornConfig

FORCE = getattr(signal, "SIGUSR2", None)
"""What a parent sends to workers that have to go at once."""

AT_ONCE = getattr(signal, "SIGQUIT", None)
"""What a parent sends to workers that have to stop without a delay."""

RETIRE = getattr(signal, "SIGUSR1", None)
"""What a parent sends to a worker that another one stands in for."""

OF_PARENT = tuple(
    getattr(signal, name) for name in ("SIGHUP", "SIGTTIN", "SIGTTOU") if hasattr(signal, name)
)
"""What only a parent listens to, although a terminal sends it to its workers as well."""


class Hearing(uvicorn.Server, ABC):
    """A server that hears signals, and does not send them to itself again as Uvicorn's does."""

    config: UvicornConfig
    exit_code: int
    _parent: int | None
    _progress: Progress
    _loop: asyncio.AbstractEventLoop | None = None

    @abstractmethod
    def stop(self, *, delay: bool) -> None:
        """Begin to stop: after the ``drain_delay`` or without it."""

    @abstractmethod
    def retire(self) -> None:
        """Begin to end in favour of another worker."""

    @abstractmethod
    def force(self) -> None:
        """Wait for nothing any more."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Listen to signals, meanwhile."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        ours: tuple[Any, ...] = (signal.SIGTERM, signal.SIGINT)
        if self._parent is not None:
            ours = (signal.SIGTERM, AT_ONCE, FORCE, RETIRE)
            for number in (signal.SIGINT, *OF_PARENT):
                signal.signal(number, signal.SIG_IGN)  # the parent hears Ctrl-C as well
        before = {number: signal.signal(number, self.handle_exit) for number in ours}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Hear a signal: the watchdog begins now, the rest when the loop comes to it."""
        again = bool(self._captured_signals)
        force = sig == FORCE or (again and self._parent is None)
        self._captured_signals.append(sig)
        runner = self.config.runner
        if force:
            self._watch_over(MARGIN)
        elif not again:
            delay = runner.drain_delay if sig == signal.SIGTERM else 0.0
            self._watch_over(delay + runner.shutdown_timeout + MARGIN)
            if self.started and sig != RETIRE:
                self.config.wrapped.turn()  # the loop may be long in coming
        if self._loop is None:
            self.should_exit = True
            raise SystemExit(self.exit_code)  # still importing the app
        if force:
            self._loop.call_soon_threadsafe(self.force)
        else:
            self._loop.call_soon_threadsafe(self._stop_for, sig)

    def _stop_for(self, sig: int) -> None:
        if sig == RETIRE:
            self.retire()
        else:
            self.stop(delay=sig == signal.SIGTERM)

    @staticmethod
    def _watch_over(seconds: float) -> None:
        """End the process after ``seconds`` whatever it does, and show what that is."""
        # Not a thread of Python's: a handler that never lets go of the loop is what it is for.
        with contextlib.suppress(OSError, ValueError, RuntimeError, AttributeError):
            faulthandler.dump_traceback_later(seconds, exit=True, file=sys.__stderr__ or sys.stderr)

    def _orphaned(self, descriptor: int) -> None:
        assert self._loop is not None
        self._loop.remove_reader(descriptor)
        self._progress.say("orphaned", "the parent is gone", level=logging.WARNING)
        self.stop(delay=True)
