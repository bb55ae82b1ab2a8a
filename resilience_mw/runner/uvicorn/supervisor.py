"""Several workers on one socket: started, replaced when they die, and waited for when they stop.

SIGHUP replaces them one by one: a new one serves before an old one makes room. SIGTTIN and SIGTTOU
start one more and end one, as with Gunicorn.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import socket
import time
from collections.abc import Sequence
from dataclasses import replace

from uvicorn.config import STARTUP_FAILURE

from ...config import Runner
from ..crashes import EXIT_CODE, MESSAGE, CrashLoop
from ..drain import MARGIN, Progress, Timetable
from .hearing import AT_ONCE, FORCE, RETIRE
from .workers import HEARD, Serve, Worker, Workers, how

logger = logging.getLogger("resilience_mw")

PATIENCE = 1.0
"""Seconds past the end of their timetable until workers are killed."""


class Supervisor:
    """The parent of the workers.

    Args:
        count: how many workers.
        sockets: bound; the workers inherit them, and listen.
        serve: run in a worker; returns its exit code.
        runner: the times that the workers keep, unless they say something else.
    """

    def __init__(
        self, count: int, sockets: Sequence[socket.socket], serve: Serve, runner: Runner
    ) -> None:
        self._count = count
        self._sockets = sockets
        self._workers = Workers(sockets, serve)
        self._runner = runner
        self._due: list[float] = []  # when to start those that are missing
        self._outdated: list[int] = []  # those that are still to be replaced
        self._crashes = CrashLoop()
        self._exit_code = 0
        self._table: Timetable | None = None
        self._progress = Progress(f"parent {os.getpid()}")

    def run(self) -> int:
        """Keep the workers until told to stop; returns the exit code."""
        signal.set_wakeup_fd(self._workers.wakeup[1], warn_on_full_buffer=False)
        for heard in HEARD:
            signal.signal(heard, lambda number, frame: None)
        self._progress.say("start", f"starting {self._count} workers")
        self._due = [0.0] * self._count
        while self._workers or (self._due and self._table is None):
            self._start_due()
            for number in self._signals():
                self._heard(number)
            self._listen_to_workers()
            for pid, worker, code in self._workers.ended():
                self._ended(pid, worker, code)
            self._renew()
            self._give_up_waiting()
        self._progress.say("stopped", f"all workers have stopped, exit code {self._exit_code}")
        return self._exit_code

    # -- workers ------------------------------------------------------------------------------

    def _start_due(self) -> None:
        now = time.monotonic()
        if self._table is None:
            for moment in [moment for moment in self._due if moment <= now]:
                self._due.remove(moment)
                self._workers.fork()

    def _listen_to_workers(self) -> None:
        for delay, shutdown in self._workers.announced():
            # The app's own code or framework may say something of the times, too.
            self._runner = replace(
                self._runner,
                drain_delay=max(delay, self._runner.drain_delay),
                shutdown_timeout=max(shutdown, self._runner.shutdown_timeout),
            )

    def _ended(self, pid: int, worker: Worker, code: int) -> None:
        if pid in self._outdated:
            self._outdated.remove(pid)
        if self._table is not None:
            if code:
                self._exit_code = self._exit_code or 1
                logger.warning("worker %d %s", pid, how(code))
        elif worker.overdue is not None:
            if code:
                logger.warning("worker %d, which was replaced, %s", pid, how(code))
        elif worker.replaces and not worker.serving:
            logger.error(
                "worker %d, which was to replace another, %s: the others serve on", pid, how(code)
            )
            self._outdated.clear()
        elif code == STARTUP_FAILURE:
            logger.error("worker %d could not start the app, and no other could: stopping", pid)
            self._fail(code)
        else:
            self._replace_dead(pid, code, time.monotonic() - worker.born)

    def _replace_dead(self, pid: int, code: int, age: float) -> None:
        # Code 0 is the end that Uvicorn's own limit of requests asks for.
        if code and self._crashes.died(age):
            why = "stopping, because another would die as well"
            logger.error("%s (the last one %s): %s", MESSAGE, how(code), why)
            self._fail(EXIT_CODE)
            return
        strikes = self._crashes.strikes
        pause = 0.1 * 2 ** (strikes - 1) if code and strikes > 1 else 0.0
        if len(self._workers.staying) + len(self._due) >= self._count:
            return  # its replacement is there already
        logger.warning("worker %d %s, starting another", pid, how(code))
        self._due.append(time.monotonic() + pause)

    def _renew(self) -> None:
        """Take the next step of a replacement: start one, or let one go that it stands in for."""
        if self._table is not None:
            return
        staying = self._workers.staying
        starting = any(not self._workers[pid].serving for pid in staying)
        if len(staying) > self._count and not starting:
            # The oldest first, which also are those that are to be replaced.
            pid = self._outdated.pop(0) if self._outdated else staying[0]
            self._retire(pid)
        elif self._outdated and not self._due and not starting and len(staying) == self._count:
            self._workers.fork(replaces=True)

    def _retire(self, pid: int) -> None:
        limit = self._runner.shutdown_timeout + MARGIN + PATIENCE
        self._workers[pid].overdue = time.monotonic() + limit
        self._workers.send(RETIRE, pid)

    # -- signals ------------------------------------------------------------------------------

    def _heard(self, number: int) -> None:
        if number in (signal.SIGTERM, signal.SIGINT):
            self._told(number)
        elif self._table is not None:
            return
        elif number == signal.SIGHUP:
            self._outdated = self._workers.staying
            logger.info("%s: replacing %d workers", self._progress.who, len(self._outdated))
        elif number == signal.SIGTTIN:
            self._count += 1
            self._due.append(0.0)
            logger.info("%s: one more worker, %d", self._progress.who, self._count)
        elif number == signal.SIGTTOU and self._count > 1:
            self._count -= 1
            if self._due:
                self._due.pop()
            logger.info("%s: one worker less, %d", self._progress.who, self._count)

    def _told(self, number: int) -> None:
        if self._table is not None:
            self._progress.say("at once", "told again, stopping at once")
            self._workers.send(FORCE)
            self._table = Timetable.begin(
                Runner(drain_delay=0, shutdown_timeout=0), time.monotonic(), delay=False
            )
            return
        delay = number == signal.SIGTERM
        self._begin(delay=delay)
        self._progress.say("stop", f"waiting for {len(self._workers)} workers to drain")
        self._workers.send(signal.SIGTERM if delay else AT_ONCE)

    def _fail(self, code: int) -> None:
        self._exit_code = code
        self._begin(delay=False)
        self._workers.send(AT_ONCE)

    def _begin(self, *, delay: bool) -> None:
        self._table = Timetable.begin(self._runner, time.monotonic(), delay=delay)
        for sock in self._sockets:
            # As long as one copy is open, clients are let into a queue that nobody empties.
            sock.close()

    def _give_up_waiting(self) -> None:
        now = time.monotonic()
        for pid, worker in self._workers.items():
            if worker.overdue is not None and now > worker.overdue:
                self._workers.send(signal.SIGKILL, pid)
        late = self._table is not None and now > self._table.end_by + PATIENCE
        if late and self._workers:
            self._exit_code = self._exit_code or 1
            killing = f"killing {len(self._workers)} workers"
            self._progress.say("killed", killing, level=logging.WARNING)
            self._workers.send(signal.SIGKILL)

    def _signals(self) -> bytes:
        """Wait a little, and return the signals that have come meanwhile."""
        with contextlib.suppress(InterruptedError):
            select.select(self._workers.watched, [], [], self._pause())
        with contextlib.suppress(BlockingIOError):
            return os.read(self._workers.wakeup[0], 512)
        return b""

    def _pause(self) -> float:
        if self._table is None and self._due:
            return min(1.0, max(0.0, min(self._due) - time.monotonic()))
        return 1.0 if self._table is None else 0.1
