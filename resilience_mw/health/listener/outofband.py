"""When the listener of a process begins and ends: one a port, whatever number of apps it has."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import sys
import time
import weakref
from collections.abc import Callable, Iterable
from functools import partial

from ...config import Health
from ...core.health import HealthPolicy
from ...exceptions import ConfigError
from .heartbeat import Heartbeat
from .listener import Listener
from .native import new_lock, original, start_thread
from .place import Place, forking_worker, is_serving, place

DID_NOT_START = 3
"""The exit code, which is Gunicorn's own for a worker that cannot start."""

LOOK_FIRST, LOOK_LAST = 0.1, 5.0
"""Seconds between two looks for a server's socket, at first and after a while."""

MOMENT = 0.05
"""Seconds for which a stop waits likewise: time to leave nothing behind, whatever comes next."""

LAST_WAIT = 2.0
"""Seconds for which the end of a process waits for its listeners at most, on a busy machine.
Else it takes a quarter of one if others take over, and next to nothing if there are none."""

PATIENCE = 2.0
"""Seconds for one listener to end before the next, on the same port, begins."""

logger = logging.getLogger("resilience_mw")

_listeners: dict[int, Listener] = {}
_leaving: dict[int, Listener] = {}
_users: dict[int, list[OutOfBand]] = {}
_armed: weakref.WeakSet[OutOfBand] = weakref.WeakSet()
_turns = new_lock()
"""Two listeners in one process would take each other's locks away."""


class OutOfBand:
    """Answers one app's probes on `health.port`, from a thread of its own.

    Args:
        policy: knows the answers.
        options: the section; its port is not 0.
    """

    def __init__(self, policy: HealthPolicy, options: Health) -> None:
        self.policy = policy
        self.options = options
        self.heartbeat = Heartbeat(options.stuck_after)

    def open(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Answer from now on; called again, only watch another loop.

        Args:
            loop: the running one, whose silence is to be noticed; ``None`` = there is none.

        Raises:
            ConfigError: the port is somebody else's, or cannot be opened.
        """
        _armed.discard(self)
        port = self.options.port
        with _turns:
            users = _users.setdefault(port, [])
            listener = _listeners.get(port)
            if listener is None:
                _wait([_leaving.pop(port)] if port in _leaving else [], PATIENCE)
                listener = _listeners[port] = Listener(self.options)
                users[:] = [self]
                listener.group.beat = partial(_oldest_beat, users)
                listener.start((self.policy,))
            elif self not in users:
                users.append(self)
                listener.group.policies = tuple(user.policy for user in users)
        if loop is not None:
            self.heartbeat.start(loop)

    def arm(self) -> None:
        """Answer as soon as this process serves: for apps that nobody tells when that is.

        In a worker of Gunicorn that is now, in its master at each fork; elsewhere once the process
        has a listening socket, for commands import an app too.

        Raises:
            ConfigError: in a worker, as `open`.
        """
        if self in _armed or self in _users.get(self.options.port, ()):
            return
        where = place()
        if where is Place.WORKER:
            self.open()
            return
        _armed.add(self)
        if where is Place.ANYWHERE:
            start_thread(_await_server(weakref.ref(self)))

    def close(self) -> None:
        """Answer no more for this app; the last one takes the listener with it."""
        _armed.discard(self)
        self.heartbeat.stop()
        port = self.options.port
        with _turns:
            users = _users.get(port, [])
            if self not in users:
                return
            users.remove(self)
            listener = _listeners[port]
            if users:
                listener.group.policies = tuple(user.policy for user in users)
                return
            _leaving[port] = _listeners.pop(port)
            listener.close()
        _wait((listener,), MOMENT)


def _oldest_beat(users: list[OutOfBand]) -> float:
    """Return when the loop that is silent for longest beat last; 0 = there is no loop."""
    beats = [user.heartbeat.last for user in users.copy()]
    return min(filter(None, beats), default=0.0)


def _wait(ending: Iterable[Listener], seconds: float) -> None:
    """Let listeners that were closed come to their end."""
    sleep, until = original("time", "sleep"), time.monotonic() + seconds
    while not all(listener.ended for listener in ending) and time.monotonic() < until:
        sleep(0.002)


def _await_server(reference: weakref.ref[OutOfBand]) -> Callable[[], None]:
    def look() -> None:
        sleep, pause = original("time", "sleep"), LOOK_FIRST
        while not is_serving():
            sleep(pause)
            pause = min(LOOK_LAST, pause * 1.1)
            if reference() not in _armed:
                return
        user = reference()
        if user is None:
            return
        try:
            user.open()
        except ConfigError as error:
            logger.error("%s", error)

    return look


def _in_child() -> None:
    """Leave the parent's listeners to it, and begin those that were waiting for this fork."""
    global _turns
    _turns = new_lock()  # another thread of the parent may hold the old one
    for listener in (*_listeners.values(), *_leaving.values()):
        if not listener.ended:
            with contextlib.suppress(OSError, ValueError):
                listener.abandon()
    _listeners.clear()
    _leaving.clear()
    _users.clear()
    for user in list(_armed):
        if forking_worker():
            try:
                user.open()
            except ConfigError as error:
                logger.error("%s", error)
                sys.stderr.flush()
                os._exit(DID_NOT_START)
        else:
            start_thread(_await_server(weakref.ref(user)))


def _at_exit() -> None:
    """Let another listen before the interpreter stops the thread wherever it is."""
    ending = (*_listeners.values(), *_leaving.values())
    for listener in ending:
        listener.close()
    _wait(ending, LAST_WAIT)


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
