"""The processes of several workers: forked, announced, and known by their end."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import socket
import struct
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...config import Runner
from ...family import become_origin
from .hearing import AT_ONCE, FORCE, OF_PARENT, RETIRE

HEARD = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, *OF_PARENT)
"""What the parent listens to."""

TOLD: tuple[Any, ...] = (signal.SIGTERM, AT_ONCE, FORCE, RETIRE)
"""What it tells workers."""

_NEWS = struct.Struct("idd")
"""What a worker says once it serves: its pid, `drain_delay` and `shutdown_timeout`."""

Serve = Callable[[Sequence[socket.socket], int, Callable[[Runner], None]], int]
"""Serves, given the sockets, a descriptor that ends with the parent, and what to call then."""


@dataclass
class Worker:
    """One process.

    Attributes:
        born: when it was forked (monotonic seconds).
        replaces: whether it is to stand in for one that still serves.
        serving: whether it has said so.
        overdue: when to kill it, once it was told to make room for another.
    """

    born: float = field(default_factory=time.monotonic)
    replaces: bool = False
    serving: bool = False
    overdue: float | None = None


class Workers(dict[int, Worker]):
    """The processes by pid, oldest first.

    Args:
        sockets: bound; the workers inherit them, and listen.
        serve: run in a worker; returns its exit code.
    """

    def __init__(self, sockets: Sequence[socket.socket], serve: Serve) -> None:
        super().__init__()
        become_origin()
        self._sockets = sockets
        self._serve = serve
        self._lifeline = os.pipe()
        self._news = os.pipe()
        self.wakeup = os.pipe()
        for descriptor in (*self.wakeup, *self._news):
            os.set_blocking(descriptor, False)
        self.watched = (self.wakeup[0], self._news[0])
        """Descriptors that become readable when something has happened."""

    @property
    def staying(self) -> list[int]:
        """Those that nobody has told to make room for another."""
        return [pid for pid, worker in self.items() if worker.overdue is None]

    def fork(self, *, replaces: bool = False) -> None:
        """Start another."""
        sys.stdout.flush()
        sys.stderr.flush()
        # Held back, so that none finds a worker with the handlers of its parent.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {*HEARD, *TOLD})
        pid = os.fork()
        if pid:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            self[pid] = Worker(replaces=replaces)
            return
        code: Any = 1
        try:
            signal.set_wakeup_fd(-1)
            for descriptor in (*self.wakeup, self._lifeline[1], self._news[0]):
                os.close(descriptor)
            for number in HEARD:
                signal.signal(number, signal.SIG_IGN if number in OF_PARENT else signal.SIG_DFL)
            for number in TOLD:
                signal.signal(number, _not_begun)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            code = self._serve(self._sockets, self._lifeline[0], self._announce)
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        except BaseException:
            traceback.print_exc()
        finally:
            # What the app, or a library, wants done at the end: the last spans, reports, coverage.
            atexit._run_exitfuncs()
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    def _announce(self, runner: Runner) -> None:
        news = _NEWS.pack(os.getpid(), runner.drain_delay, runner.shutdown_timeout)
        with contextlib.suppress(OSError):  # the parent is gone, which is heard of elsewhere
            os.write(self._news[1], news)

    def announced(self) -> Iterator[tuple[float, float]]:
        """Yield `drain_delay` and `shutdown_timeout` of each that serves by now, and note it."""
        while True:
            try:
                news = os.read(self._news[0], _NEWS.size)
            except BlockingIOError:
                return
            pid, *times = _NEWS.unpack(news)
            if pid in self:
                self[pid].serving = True
                yield times[0], times[1]

    def ended(self) -> Iterator[tuple[int, Worker, int]]:
        """Yield those that have ended: pid, worker and exit code, negative for a signal."""
        while self:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            worker = self.pop(pid, None)
            if worker is not None:
                yield pid, worker, os.waitstatus_to_exitcode(status)

    def send(self, number: Any, *pids: int) -> None:
        """Send a signal to some of them, or to all."""
        for pid in pids or tuple(self):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def _not_begun(number: int, frame: Any) -> None:
    """End a worker that is told to before its server listens to signals."""
    os._exit(0)


def how(code: int) -> str:
    """Return how a process ended, in words."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
