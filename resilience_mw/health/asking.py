"""One life of a monitor: a thread with an event loop that asks until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import random
import threading
import time
from collections.abc import Callable, Mapping

from ..core.shedding import Shedding
from ..core.snapshot import CheckResult
from .check import Check, CheckFailed
from .flight import Flight
from .places import has_threads, is_async, is_ours, run_here, run_there
from .watched import Watched

logger = logging.getLogger("resilience_mw")

NOT_ASKED = "not asked"

SHEDDING = "shedding"
"""What readiness under load is called among the checks."""


class Asking:
    """Asks each check at its interval, from `begin` to `stop`; there is no second life.

    Args:
        checks: what to ask, by name.
        shedding: decides about readiness under load; ``None`` = nothing does.
        waits_for_loop: an app with an event loop is to come, for its coroutine functions.
        before: the life before this one; what hangs from then is not asked beside itself.
    """

    def __init__(
        self,
        checks: Mapping[str, Check],
        shedding: Shedding | None,
        *,
        waits_for_loop: bool,
        before: Asking | None = None,
    ) -> None:
        self.watched = [Watched(name, check) for name, check in checks.items()]
        for watched, old in zip(self.watched, before.watched if before else (), strict=False):
            if old.flight is not None and old.flight.hangs:
                watched.flight = old.flight
        self.shed: CheckResult | None = None
        if shedding is not None:
            self.shed = CheckResult(SHEDDING, True, True, "", time.time())
        self.counts: Callable[[], tuple[int, int]] | None = None
        self.over = False
        self.has_threads = has_threads()
        """Whether threads were threads when it was made: gevent may replace them later."""
        self._shedding = shedding
        self.waits_for_loop = waits_for_loop
        self._app_loop: asyncio.AbstractEventLoop | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stopping = asyncio.Event()
        self._adopted = asyncio.Event()

    @property
    def running(self) -> bool:
        """Whether it has begun and was not told to stop."""
        return self._thread is not None and not self.over

    def begin(self) -> bool:
        """Start the thread; returns False, doing nothing, if that has been done.

        Raises:
            OSError: there is no descriptor left.
            RuntimeError: there is no thread left.
        """
        if self._thread is not None:
            return False
        # Not the policy's: uvloop's loops do not survive a fork.
        loop = self._loop = asyncio.SelectorEventLoop()
        thread = threading.Thread(target=self._run, name="resilience-mw-health", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            self._loop = None
            loop.close()
            raise
        self._thread = thread
        return True

    def adopt(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run the app's coroutine functions in ``loop`` from now on."""
        self._app_loop = loop
        self._tell(self._adopted)

    def stop(self) -> None:
        """Tell the thread to end; may be called from anywhere, more than once."""
        self.over = True
        self._tell(self._stopping)

    def join(self, timeout: float) -> None:
        """Wait until the thread has ended, for at most so many seconds."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)

    def _tell(self, event: asyncio.Event) -> None:
        loop = self._loop
        if loop is None:
            event.set()
            return
        with contextlib.suppress(RuntimeError):  # it has ended
            loop.call_soon_threadsafe(event.set)

    def _run(self) -> None:
        loop = self._loop
        assert loop is not None
        try:
            loop.run_until_complete(self._main())
        except Exception:
            logger.exception("health checks are not asked any more")
        finally:
            self.over = True
            loop.close()
            # Here, where nobody starts one any more: behind the end an ask would never be over.
            for watched in self.watched:
                watched.thread.stop()

    async def _main(self) -> None:
        tasks = [asyncio.ensure_future(self._ask_on(watched)) for watched in self.watched]
        if self._shedding is not None:
            tasks.append(asyncio.ensure_future(self._look_on(self._shedding)))
        await self._stopping.wait()
        for watched in self.watched:
            if watched.flight is not None and watched.flight.hangs:
                watched.flight.cancel()
        tasks += [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=0.2)

    async def _ask_on(self, watched: Watched) -> None:
        while True:
            began = time.monotonic()
            try:
                await self._ask(watched)
            except Exception:
                # A fault of ours must not pass for a passing check.
                if watched.result.reason != NOT_ASKED:
                    logger.exception("health check %s could not be asked", watched.name)
                watched.observe(NOT_ASKED, None, time.monotonic())
            pause = watched.interval * (1 + watched.jitter * (random.random() - 0.5))
            await asyncio.sleep(max(0.0, began + pause - time.monotonic()))

    async def _ask(self, watched: Watched) -> None:
        flight = watched.flight
        if flight is not None and flight.hangs:
            # One at a time: what hangs is not asked again beside itself.
            watched.observe("timeout", None, time.monotonic())
            return
        flight = watched.flight = await self._take_off(watched)
        await asyncio.wait([flight.landed], timeout=watched.timeout)
        watched.take(flight, time.monotonic())
        if not flight.over:
            flight.cancel()

    async def _take_off(self, watched: Watched) -> Flight:
        check, here = watched.check, asyncio.get_running_loop()
        if is_ours(check):
            flight = Flight(here, here)
            run_here(check, flight)
            return flight
        if is_async(check) and self.waits_for_loop:
            await self._adopted.wait()
        there = self._app_loop
        if is_async(check) and there is None and not has_threads():
            flight = Flight(here, here)
            run_here(check, flight)
            return flight
        if there is None or not is_async(check):
            flight = Flight(here)
            watched.thread.run(check, flight)
            return flight
        flight = Flight(here, there)
        try:
            run_there(check, flight, there)
        except RuntimeError:
            flight.end(error=CheckFailed("no event loop"))
        return flight

    async def _look_on(self, shedding: Shedding) -> None:
        while True:
            if self.counts is not None:
                before = shedding.shedding
                now = shedding.sample(time.monotonic(), *self.counts())
                if now is not before:
                    self._turn(now, shedding)
            await asyncio.sleep(shedding.pause)

    def _turn(self, shedding: bool, rule: Shedding) -> None:
        assert self.shed is not None
        reason = "refusing too much" if shedding else ""
        at = time.time()
        self.shed = dataclasses.replace(
            self.shed, passing=not shedding, reason=reason, since=at, observed_at=at
        )
        if shedding:
            logger.warning(
                "not ready: at least %g of the requests of the last %g s were refused",
                rule.share,
                rule.seconds,
            )
        else:
            logger.info("ready again: less than %g of the requests are refused", rule.share / 2)
