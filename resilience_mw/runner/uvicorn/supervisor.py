"""Several workers on one socket: started, replaced when they die, and waited for when they stop."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from uvicorn.config import STARTUP_FAILURE

from ...config import Runner
from ...family import become_origin
from ..crashes import EXIT_CODE, MESSAGE, CrashLoop
from ..drain import Progress, Timetable
from .server import AT_ONCE, FORCE

logger = logging.getLogger("resilience_mw")

PATIENCE = 1.0
"""Seconds past the end of their timetable until workers are killed."""

HEARD = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)

Serve = Callable[[Sequence[socket.socket], int], int]


class Supervisor:
    """The parent of the workers.

    Args:
        count: how many workers.
        sockets: bound; the workers inherit them, and listen.
        serve: run in a worker: given the sockets and a descriptor that ends with the parent, it
            serves, and returns the exit code.
        runner: the times that the workers keep.
    """

    def __init__(
        self, count: int, sockets: Sequence[socket.socket], serve: Serve, runner: Runner
    ) -> None:
        self._count = count
        self._sockets = sockets
        self._serve = serve
        self._runner = runner
        self._born: dict[int, float] = {}
        self._due: list[float] = []  # when to start those that are missing
        self._crashes = CrashLoop()
        self._exit_code = 0
        self._table: Timetable | None = None
        self._progress = Progress(f"parent {os.getpid()}")

    def run(self) -> int:
        """Keep the workers until told to stop; returns the exit code."""
        become_origin()
        self._lifeline = os.pipe()
        self._wakeup = os.pipe()
        for descriptor in self._wakeup:
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(self._wakeup[1], warn_on_full_buffer=False)
        for heard in HEARD:
            signal.signal(heard, lambda number, frame: None)
        self._progress.say("start", f"starting {self._count} workers")
        self._due = [0.0] * self._count
        while self._born or (self._due and self._table is None):
            self._start_due()
            for number in self._signals():
                if number in (signal.SIGTERM, signal.SIGINT):
                    self._told(number)
            self._reap()
            self._give_up_waiting()
        self._progress.say("stopped", f"all workers have stopped, exit code {self._exit_code}")
        return self._exit_code

    # -- workers ------------------------------------------------------------------------------

    def _start_due(self) -> None:
        now = time.monotonic()
        if self._table is None:
            for moment in [moment for moment in self._due if moment <= now]:
                self._due.remove(moment)
                self._fork()

    def _fork(self) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid:
            self._born[pid] = time.monotonic()
            return
        code: Any = 1
        try:
            signal.set_wakeup_fd(-1)
            for descriptor in (*self._wakeup, self._lifeline[1]):
                os.close(descriptor)
            for number in HEARD:
                signal.signal(number, signal.SIG_DFL)
            code = self._serve(self._sockets, self._lifeline[0])
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        except BaseException:
            traceback.print_exc()
        finally:
            logging.shutdown()
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    def _reap(self) -> None:
        while self._born:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            born = self._born.pop(pid, None)
            if born is not None:
                self._ended(pid, os.waitstatus_to_exitcode(status), time.monotonic() - born)

    def _ended(self, pid: int, code: int, age: float) -> None:
        if self._table is not None:
            if code:
                self._exit_code = self._exit_code or 1
                logger.warning("worker %d %s", pid, _how(code))
        elif code == STARTUP_FAILURE:
            logger.error("worker %d could not start the app, and no other could: stopping", pid)
            self._fail(code)
        else:
            # Code 0 is the end that Uvicorn's own limit of requests asks for.
            if code and self._crashes.died(age):
                why = "stopping, because another would die as well"
                logger.error("%s (the last one %s): %s", MESSAGE, _how(code), why)
                self._fail(EXIT_CODE)
                return
            strikes = self._crashes.strikes
            pause = 0.1 * 2 ** (strikes - 1) if code and strikes > 1 else 0.0
            logger.warning("worker %d %s, starting another", pid, _how(code))
            self._due.append(time.monotonic() + pause)

    # -- stop ---------------------------------------------------------------------------------

    def _told(self, number: int) -> None:
        if self._table is not None:
            self._progress.say("at once", "told again, stopping at once")
            self._send(FORCE)
            self._table = Timetable.begin(
                Runner(drain_delay=0, shutdown_timeout=0), time.monotonic(), delay=False
            )
            return
        delay = number == signal.SIGTERM
        self._begin(delay=delay)
        self._progress.say("stop", f"waiting for {len(self._born)} workers to drain")
        self._send(signal.SIGTERM if delay else AT_ONCE)

    def _fail(self, code: int) -> None:
        self._exit_code = code
        self._begin(delay=False)
        self._send(AT_ONCE)

    def _begin(self, *, delay: bool) -> None:
        self._table = Timetable.begin(self._runner, time.monotonic(), delay=delay)
        for sock in self._sockets:
            # As long as one copy is open, clients are let into a queue that nobody empties.
            sock.close()

    def _send(self, number: Any) -> None:
        for pid in self._born:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _give_up_waiting(self) -> None:
        if self._table is not None and time.monotonic() > self._table.end_by + PATIENCE:
            if self._born:
                self._exit_code = self._exit_code or 1
                self._progress.say(
                    "killed", f"killing {len(self._born)} workers", level=logging.WARNING
                )
            self._send(signal.SIGKILL)

    def _signals(self) -> bytes:
        """Wait a little, and return the signals that have come meanwhile."""
        with contextlib.suppress(InterruptedError):
            select.select([self._wakeup[0]], [], [], self._pause())
        with contextlib.suppress(BlockingIOError):
            return os.read(self._wakeup[0], 512)
        return b""

    def _pause(self) -> float:
        if self._table is None and self._due:
            return min(1.0, max(0.0, min(self._due) - time.monotonic()))
        return 1.0 if self._table is None else 0.1


def _how(code: int) -> str:
    """Return how a process ended, in words."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
