"""The system's own threads and sockets, whatever gevent has put in their place.

A greenlet could not answer while the worker is busy, which is all that the listener is for.
"""

from __future__ import annotations

import importlib
import os
import select
import sys
import threading
from collections.abc import Callable
from typing import Any


def original(module: str, name: str) -> Any:
    """Return a function or class of the standard library as it was before gevent patched it."""
    monkey = sys.modules.get("gevent.monkey")
    if monkey is not None:
        return monkey.get_original(module, name)
    return getattr(importlib.import_module(module), name)


def start_thread(run: Callable[[], None]) -> None:
    """Run ``run`` in a real thread, which keeps no process from ending."""
    if "gevent.monkey" in sys.modules:
        original("_thread", "start_new_thread")(run, ())
    else:
        threading.Thread(target=run, name="resilience-mw-probes", daemon=True).start()


def new_lock() -> Any:
    """Return a lock for real threads."""
    return original("_thread", "allocate_lock")()


class Poller:
    """Waits until descriptors become ready: ``poll`` where there is one, else ``select``."""

    def __init__(self) -> None:
        make = getattr(select, "poll", None)
        if make is not None:
            make = original("select", "poll")
        self._poll: Any = None if make is None else make()
        self._select = original("select", "select")
        self._watched: dict[int, bool] = {}

    def watch(self, descriptor: int, *, writing: bool = False) -> None:
        """Wait for ``descriptor`` to become readable, or writable instead."""
        self._watched[descriptor] = writing
        if self._poll is not None:
            self._poll.register(descriptor, select.POLLOUT if writing else select.POLLIN)

    def forget(self, descriptor: int) -> None:
        """Wait for it no more."""
        if self._watched.pop(descriptor, None) is not None and self._poll is not None:
            self._poll.unregister(descriptor)

    def wait(self, seconds: float) -> list[int]:
        """Return the descriptors that are ready, or in error; none after so many seconds."""
        if self._poll is not None:
            return [fd for fd, _ in self._poll.poll(max(0.0, seconds) * 1000.0)]
        writing = [fd for fd, written in self._watched.items() if written]
        reading = [fd for fd, written in self._watched.items() if not written]
        ready = self._select(reading, writing, [], max(0.0, seconds))
        return [*ready[0], *ready[1]]


class Bell:
    """Wakes the poller of another thread; may be rung from a signal handler."""

    def __init__(self) -> None:
        self._inward, self._outward = os.pipe()
        for descriptor in (self._inward, self._outward):
            os.set_blocking(descriptor, False)

    def fileno(self) -> int:
        """Return the descriptor that is readable once it has been rung."""
        return self._inward

    def ring(self) -> None:
        """Wake whoever waits."""
        try:
            os.write(self._outward, b"\0")
        except (BlockingIOError, OSError):
            return  # it rings already, or has been closed

    def clear(self) -> None:
        """Stop ringing."""
        try:
            while os.read(self._inward, 512):
                pass
        except (BlockingIOError, OSError):
            return

    def close(self) -> None:
        """Give both ends back."""
        for descriptor in (self._inward, self._outward):
            os.close(descriptor)
        self._inward = self._outward = -1
