"""The thread that answers probes, and what it tells the threads of the other workers."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import socket
import time
from typing import Any

from ...config import Health
from ...config.wording import one_line
from ...core.health import HealthPolicy
from ...exceptions import ConfigError
from ...family import family, related
from .answerer import Answerer, listen
from .board import Board, Slot
from .group import Group
from .haste import Haste
from .native import Bell, Poller, original, start_thread

TICK = 0.1
"""Seconds between two reports to the other workers."""

EAGER_TICK = 0.005
"""The same while the worker that listens is about to end."""

PAUSED = 1.0
"""Seconds between two turns that are no wait of ours: the whole process did not run."""

NAP = 0.0005
"""Seconds to let go of the interpreter for, to see how long it takes to get it back: enough for
another thread to take it."""

HAND_OVER = 2.5 * TICK
"""Seconds for which a worker that ends still listens, so that another stands by."""

LOOK, LOOK_BEHIND = 0.25, 0.5
"""Seconds between two looks whether the shared file is still there: of the worker that listens,
and of the others, which follow it."""

ATTEMPTS, BETWEEN = 100, 0.01
"""How often the port is asked for, and seconds between: it may just be let go. They are short, for
a worker that Gunicorn has just forked misses a signal meanwhile."""

_TRANSIENT = {errno.EADDRINUSE, errno.EADDRNOTAVAIL}
_NOT_HERE = {errno.EADDRNOTAVAIL, errno.EINVAL}
_NO_NAME = (socket.gaierror, UnicodeError)

logger = logging.getLogger("resilience_mw")


class Listener:
    """Answers the probes on a port of their own, for this worker or for all of its server.

    Args:
        options: the section.

    Raises:
        ConfigError: the port is somebody else's, or cannot be opened.
    """

    def __init__(self, options: Health) -> None:
        self.options = options
        self.board = Board(options.port)
        self.group = Group(options, lambda wanted: self.board.others(wanted), time.monotonic)
        self._family = family()
        self._bell = Bell()
        self._poller = Poller()
        self._poller.watch(self._bell.fileno())
        self._answerer: Answerer | None = None
        self._watched: tuple[int, int] = (0, -1)
        self._closing_at = 0.0
        self._haste = Haste()
        self._sleep = original("time", "sleep")
        self._measured_at = 0.0
        self._looked_at = self._turned_at = time.monotonic()
        self._stuck = False
        self.ended = False
        """Whether the thread has come to its end."""
        self._complained = False
        try:
            self._join()
        except BaseException:
            self.board.abandon()
            self._bell.close()
            raise

    def start(self, policies: tuple[HealthPolicy, ...]) -> None:
        """Answer from what these policies say, from now on."""
        self.group.policies = policies
        self._report()
        start_thread(self._run)

    def wake(self) -> None:
        """Have the thread look at once; a signal handler may call it."""
        self._bell.ring()

    def close(self) -> None:
        """End soon: at once, or when another worker listens."""
        if not self._closing_at:
            self._closing_at = time.monotonic()
            self.wake()

    def abandon(self) -> None:
        """Close the descriptors and nothing else: in a child of the process that they are of."""
        self._haste.stop()
        if self._answerer is not None:
            self._answerer.abandon()
        if self._watched[1] >= 0:
            os.close(self._watched[1])
        self._bell.close()
        self.board.abandon()

    def _join(self) -> None:
        self._know_all()
        self.board.join()
        self._report()
        error: Exception = OSError("nobody answers there")
        for _ in range(ATTEMPTS):
            if self.board.elect():
                try:
                    self._listen()
                    return
                except (OSError, UnicodeError) as failed:
                    error = failed
                    self.board.resign()
                    if getattr(failed, "errno", None) not in _TRANSIENT:
                        break
            elif self.board.listener[2]:
                self._know_all()  # one of us would have let another listen by now
                return
            time.sleep(BETWEEN)
        raise self._refused(error) from None

    def _know_all(self) -> None:
        for slot in self.board.others():
            if not related(self._family, slot.family):
                raise self._taken(f"another server with process {slot.pid} listens there")

    def _taken(self, why: str) -> ConfigError:
        where = f"{self.options.host!r}, port {self.options.port}"
        return ConfigError(
            f"health.port must be free, or 0 = off, got {where}: {one_line(why)}",
            options=("health.port", "health.host"),
        )

    def _refused(self, error: Exception) -> ConfigError:
        why = getattr(error, "strerror", None) or str(error)
        if getattr(error, "errno", None) not in _NOT_HERE and not isinstance(error, _NO_NAME):
            return self._taken(why)
        return ConfigError(
            f"health.host must be an address of this machine, or its name, got "
            f"{self.options.host!r}: {one_line(why)}",
            options=("health.host",),
        )

    def _listen(self) -> None:
        opened = listen(self.options.host, self.options.port)
        self._answerer = Answerer(opened, self._poller, self.group.respond)
        self.board.declare(listening=True)
        where = f"[{self.options.host}]" if ":" in self.options.host else self.options.host
        logger.info("process %d answers probes on %s:%d", os.getpid(), where, self.options.port)

    # -- in the thread ------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._over():
            try:
                self._turn()
            except Exception as error:
                self._complain(error)
                self._sleep(TICK)
        with contextlib.suppress(OSError, ValueError):
            self._end()
        self.ended = True

    def _turn(self) -> None:
        before = time.monotonic()
        ready = self._poller.wait(self._pause(before))
        now = time.monotonic()
        if now - self._turned_at > PAUSED:
            self.group.awake_since = now
        self._turned_at = now
        if self._answerer is not None:
            self._answerer.serve(ready, now)
        if self._bell.fileno() in ready:
            self._bell.clear()
        self._look(now)
        self._report()
        self._tell_of_loop()
        if not self._closing_at:
            self._stand_by()
        if now - self._measured_at > TICK:
            self._measured_at = begun = time.monotonic()
            self._sleep(NAP)
            self._haste.waited(time.monotonic() - begun - NAP)

    def _pause(self, now: float) -> float:
        if self._answerer is not None:
            return min(TICK, max(0.0, self._answerer.next_due() - now))
        return EAGER_TICK if self.board.listener[1] else TICK

    def _report(self) -> None:
        group = self.group
        ready = not self._closing_at and group.ready()
        self.board.write(Slot(os.getpid(), self._family, group.beat(), group.started(), ready))

    def _tell_of_loop(self) -> None:
        stuck = self.group.stuck_here()
        if stuck != self._stuck:
            self._stuck = stuck
            pid, limit = os.getpid(), self.options.stuck_after
            if stuck:
                logger.error("process %d: the event loop is stuck for more than %g s", pid, limit)
            else:
                logger.warning("process %d: the event loop turns again", pid)

    def _look(self, now: float) -> None:
        """Move to a new file when somebody has removed the one that is shared."""
        listens = self._answerer is not None
        if now - self._looked_at > (LOOK if listens else LOOK_BEHIND):
            self._looked_at = now
            if self.board.renew(make=listens) and listens:
                logger.warning("the file behind health.port was removed, and is made anew")

    def _stand_by(self) -> None:
        """Listen if nobody does any more; else be woken when the one that does is gone."""
        if self._answerer is not None:
            if not self.board.elected and self.board.elect():  # in a new file
                self.board.declare(listening=True)
        elif self.board.elect():
            self._watch(0)
            try:
                self._listen()
            except OSError as error:
                self.board.resign()
                self._complain(self._refused(error))
        else:
            self._watch(self.board.listener[0])

    def _complain(self, error: Exception) -> None:
        if not self._complained:
            self._complained = True
            logger.error("process %d cannot answer probes for now", os.getpid(), exc_info=error)

    def _watch(self, pid: int) -> None:
        watched, descriptor = self._watched
        if pid == watched:
            return
        if descriptor >= 0:
            self._poller.forget(descriptor)
            self._watched = (0, -1)  # a fork at this very moment must not close it again
            os.close(descriptor)
        descriptor = -1
        open_process: Any = getattr(os, "pidfd_open", None)
        if pid and open_process is not None:
            with contextlib.suppress(OSError):
                descriptor = open_process(pid)
                self._poller.watch(descriptor)
        self._watched = (pid, descriptor)

    def _over(self) -> bool:
        if not self._closing_at:
            return False
        if self._answerer is None or not any(True for _ in self.board.others()):
            return True
        if self.board.elected:
            self.board.declare(listening=True, resigning=True)
        return time.monotonic() - self._closing_at > HAND_OVER

    def _end(self) -> None:
        self._haste.stop()
        if self._answerer is not None:
            self._answerer.accept(time.monotonic())
            self._answerer.close()
        self._watch(0)
        self.board.close()
        self._bell.close()
