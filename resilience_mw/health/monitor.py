"""Asks all checks, each in its own time, in a thread that nothing of the app's can hold up."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping

from ..core.health import FIRST_ANSWERS
from ..core.shedding import Shedding
from ..core.snapshot import CheckResult
from ..signals.running import running_loop
from .asking import Asking
from .check import Check
from .places import has_threads, runs_here

logger = logging.getLogger("resilience_mw")


class Monitor:
    """Knows how the checks stand, without anybody having to wait for them.

    One daemon thread with an event loop of its own; see `resilience_mw.health.places` for where
    the probes themselves run. It begins when it is told to or first asked, and a child that is
    forked from a process with a monitor has one of its own.

    Args:
        checks: by name; a bare callable is a critical check with the defaults.
        forward: name of the check whose status is passed on.
        shedding: decides whether so much is refused that this instance is not ready.

    Example:
        >>> monitor = Monitor({"cache": Check(lambda: True)})
        >>> monitor.ready
        False
    """

    def __init__(
        self,
        checks: Mapping[str, Check | Callable[[], object]],
        *,
        forward: str | None = None,
        shedding: Shedding | None = None,
    ) -> None:
        self.checks = {
            name: check if isinstance(check, Check) else Check(check)
            for name, check in checks.items()
        }
        self._expects = False
        self._app_loop: asyncio.AbstractEventLoop | None = None
        self._forward = forward
        self._shedding = shedding
        self._counts: Callable[[], tuple[int, int]] | None = None
        self._touched = False
        self._resumes = False
        self._complained = False
        self._lock = threading.Lock()
        self._asking = self._new()
        self._end: weakref.finalize[..., Monitor] | None = None
        _monitors.add(self)

    def expect(self) -> None:
        """Leave coroutine functions alone until `start` has been given the app's event loop."""
        self._expects = self._asking.waits_for_loop = True

    def start(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Begin to ask, unless that has begun.

        Args:
            loop: the app's, in which its coroutine functions are to run; ``None`` = it has none,
                or it has been given before.
        """
        if self._asking.has_threads is not has_threads():
            # Those were begun before gevent patched this worker, and so were the locks.
            self._lock = threading.Lock()
            self._asking.stop()
            self._asking = self._new()
        with self._lock:
            if self._asking.over:
                self._asking = self._new(self._asking)
            asking = self._asking
            if loop is not None:
                self._app_loop = loop
            if self._app_loop is not None:
                asking.adopt(self._app_loop)
            try:
                if asking.begin():
                    self._complained = False
                    # Whoever drops a guard has dropped its checks.
                    if self._end is not None:
                        self._end.detach()
                    self._end = weakref.finalize(self, asking.stop)
                    self._end.atexit = False
            except (OSError, RuntimeError) as error:
                # Not ready until the next probe tries again: nothing else may fail for that.
                if not self._complained:
                    self._complained = True
                    logger.error("health checks cannot be asked for now: %s", error)

    def touch(self) -> None:
        """Begin to ask, unless that has begun: somebody wants to know."""
        self._touched = True
        loop = self._app_loop
        if (
            self._asking.running
            and self._asking.has_threads is has_threads()
            and (loop is None or not loop.is_closed())  # else another may be running
        ):
            return
        if runs_here():
            self.start(running_loop() if self._expects else None)

    def settle(self) -> None:
        """Begin to ask; in a worker that is about to serve, wait a moment for first answers."""
        self.start()
        if _is_worker():
            until = time.monotonic() + FIRST_ANSWERS
            while not self.known and time.monotonic() < until:
                time.sleep(0.002)

    def close(self) -> None:
        """Stop asking. What is known stays known until it is old."""
        self._app_loop = None
        self._halt()

    def _halt(self) -> None:
        with self._lock:
            self._asking.stop()
        self._asking.join(1.0)

    def watch(self, counts: Callable[[], tuple[int, int]]) -> None:
        """Learn how many requests were admitted and refused from now on by ``counts``."""
        self._counts = self._asking.counts = counts

    def results(self) -> tuple[CheckResult, ...]:
        """Return what is known of each check, in their order."""
        asking, now = self._asking, time.monotonic()
        results = tuple(watched.current(now) for watched in asking.watched)
        return results if asking.shed is None else (*results, asking.shed)

    @property
    def ready(self) -> bool:
        """Whether every critical check passes; one that was not asked yet does not."""
        return all(result.passing for result in self.results() if result.critical)

    @property
    def known(self) -> bool:
        """Whether every critical check has been asked."""
        return all(
            watched.result.observed_at is not None
            for watched in self._asking.watched
            if watched.critical
        )

    @property
    def forwarded(self) -> int | None:
        """The status that the next tier answered with last; ``None`` = none that is fresh."""
        for watched in self._asking.watched:
            if watched.name == self._forward:
                return watched.answered(time.monotonic())
        return None

    def _new(self, before: Asking | None = None) -> Asking:
        rule = self._shedding
        if rule is not None:
            rule = Shedding(rule.share, rule.seconds)  # which knows nothing of an earlier life
        asking = Asking(self.checks, rule, waits_for_loop=self._expects, before=before)
        asking.counts = self._counts
        return asking

    # A process that nobody has asked yet may be one that only forks those that are asked, such as
    # Gunicorn's with a preloaded app: its thread ends here, and begins in each child. One that has
    # been asked goes on, and its child begins when it is asked, too.

    def _before_fork(self) -> None:
        if self._asking.running and not self._touched:
            self._resumes = True
            self._halt()

    def _after_fork_in_parent(self) -> None:
        if self._app_loop is not None and self._resumes:
            self.start()  # it serves, since it has an event loop

    def _after_fork_in_child(self) -> None:
        resumes = self._resumes and not self._touched
        self._lock = threading.Lock()  # whoever held it is not here
        if self._asking.running:
            _lost.append(self._asking)
        self._app_loop = None
        self._touched = False
        self._asking = self._new()
        if resumes and not _to_be_patched():
            self.settle()


def _to_be_patched() -> bool:
    """Whether gevent is about to replace threads here: what began before would be of no use."""
    return "gunicorn.workers.ggevent" in sys.modules and has_threads()


def _is_worker() -> bool:
    """Whether this is a worker of Gunicorn that has not begun to serve."""
    if "gunicorn.arbiter" not in sys.modules:
        return False
    from .listener.place import Place, forking_worker, place

    return forking_worker() or place() is Place.WORKER


_monitors: weakref.WeakSet[Monitor] = weakref.WeakSet()
_lost: list[Asking] = []
"""What was running in the parent: kept, since its event loop cannot be closed here."""


def _each(action: Callable[[Monitor], None]) -> Callable[[], None]:
    def each() -> None:
        for monitor in list(_monitors):
            action(monitor)

    return each


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_each(Monitor._before_fork),
        after_in_parent=_each(Monitor._after_fork_in_parent),
        after_in_child=_each(Monitor._after_fork_in_child),
    )
