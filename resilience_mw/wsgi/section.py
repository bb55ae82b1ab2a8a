"""Mutual exclusion that a finalizer and a signal handler may ask for, too."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from types import TracebackType

logger = logging.getLogger("resilience_mw")


class Section:
    """A lock, and a list of what to do as soon as it is free.

    Garbage collection and signals interrupt a thread anywhere, also while it holds the lock.
    Whatever they want done under it goes through `soon`, which never waits.
    """

    __slots__ = ("due", "lock")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.due: deque[Callable[[], object]] = deque()

    def acquire(self) -> None:
        """Wait for the lock, then do what is due."""
        self.lock.acquire()
        if self.due:
            try:
                self._catch_up()
            except BaseException:
                self.lock.release()
                raise

    def release(self) -> None:
        """Give the lock up; what became due meanwhile is done before this returns."""
        self.lock.release()
        self.settle()

    def settle(self) -> None:
        """Do what is due, unless somebody holds the lock, who then does it.

        Where two calls would cost more than the work itself, `lock` is taken directly; then this
        is called if there is anything in `due`.
        """
        while self.due and self.lock.acquire(blocking=False):
            try:
                self._catch_up()
            finally:
                self.lock.release()

    def soon(self, job: Callable[[], object]) -> None:
        """Run ``job`` under the lock: at once if it is free, else whoever holds it does.

        An error of ``job`` is logged, since the thread that runs it may be another's.
        """
        self.due.append(job)
        if self.lock.acquire(blocking=False):
            try:
                self._catch_up()
            finally:
                # What arrives between the last look and this must not be left lying.
                self.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()

    def _catch_up(self) -> None:
        while self.due:
            job = self.due.popleft()
            try:
                job()
            except Exception:
                logger.exception("a policy failed at the end of a request")


_sections: dict[str, Section] = {}


def shared_section() -> Section:
    """Return the one section of this process.

    One, because guards may share a policy (one limit over several apps), and it is never held for
    long. Made with the first guard rather than at import, so that gevent can patch locks before.
    """
    return _sections.setdefault("shared", Section())
