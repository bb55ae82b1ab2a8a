"""Where a check's probe runs.

| probe | runs in |
|---|---|
| of a built-in check, a coroutine function | the monitor's own event loop |
| another coroutine function, under ASGI | the app's event loop: its pools belong there |
| any other | a thread of the check's own, one at a time |

Where gevent has replaced threads by greenlets, every coroutine function runs in the monitor's loop:
they all share one thread, and a thread cannot run a second loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import queue
import sys
import threading
from collections.abc import Awaitable
from typing import Any

from .check import Check
from .flight import Flight


def is_ours(check: Check) -> bool:
    """Whether the probe is a built-in check's own, and so known not to block a loop."""
    probe = check.probe
    own = getattr(probe, "__self__", None) is check and inspect.iscoroutinefunction(probe)
    return own and type(check).__module__.startswith(__package__)


def has_threads() -> bool:
    """Whether threads are threads here, and not greenlets."""
    patched = sys.modules.get("gevent.monkey")
    return patched is None or not patched.is_module_patched("threading")


def runs_here() -> bool:
    """Whether what is started here as a thread will run: a greenlet does not beside the worker."""
    beside = sys.platform == "linux" and threading.get_native_id() != os.getpid()
    return has_threads() or not beside


def is_async(check: Check) -> bool:
    """Whether the probe is a coroutine function, or an object whose call is one."""
    probe: Any = check.probe
    call = getattr(probe, "__call__", None)  # noqa: B004 - the method itself is what is looked at
    return inspect.iscoroutinefunction(probe) or inspect.iscoroutinefunction(call)


def run_here(check: Check, flight: Flight) -> None:
    """Run the probe in the running loop."""
    task = asyncio.ensure_future(_fly(check, flight))
    flight.began(task.cancel)


def run_there(check: Check, flight: Flight, loop: asyncio.AbstractEventLoop) -> None:
    """Run the probe in another thread's loop, as soon as that has a turn.

    Raises:
        RuntimeError: the loop is closed.
    """

    def begin() -> None:
        if flight.cancelled:
            flight.end(error=asyncio.CancelledError())
            return
        task = loop.create_task(_fly(check, flight))
        flight.began(lambda: loop.call_soon_threadsafe(task.cancel))

    loop.call_soon_threadsafe(begin)


class Thread:
    """Calls one check's probe, one ask after the other; starts with the first.

    A probe that returns an awaitable has it run in an event loop that lasts as long as the thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        # Named here, for gevent may replace it after this module has been imported.
        self._asks: queue.SimpleQueue[tuple[Check, Flight] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._runner: asyncio.Runner | None = None

    def run(self, check: Check, flight: Flight) -> None:
        """Call the probe as soon as the thread is free.

        Raises:
            RuntimeError: no thread can be started; the next call tries again.
        """
        if self._thread is None:
            name = f"resilience-mw-check-{self._name}"
            # A daemon: nobody should wait at exit for a check that hangs.
            thread = threading.Thread(target=self._work, name=name, daemon=True)
            thread.start()
            self._thread = thread
        self._asks.put((check, flight))

    def stop(self) -> None:
        """End the thread, once the probe it is in returns."""
        self._asks.put(None)

    def _work(self) -> None:
        with contextlib.ExitStack() as stack:
            while self._call(stack):
                pass  # in a function, so that nothing of one ask lives until the next

    def _call(self, stack: contextlib.ExitStack) -> bool:
        ask = self._asks.get()
        if ask is None:
            return False
        check, flight = ask
        try:
            value = check.probe()
            if inspect.isawaitable(value):
                if self._runner is None:
                    self._runner = stack.enter_context(asyncio.Runner())
                value = self._runner.run(_wait(value, flight))
        except BaseException as error:
            flight.end(error=error)
        else:
            flight.end(value)
        return True


async def _wait(work: Awaitable[object], flight: Flight) -> object:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    if task is not None:
        flight.began(lambda: loop.call_soon_threadsafe(task.cancel))
    return await work


async def _fly(check: Check, flight: Flight) -> None:
    try:
        value: Any = check.probe()
        flight.end(await value if inspect.isawaitable(value) else value)
    except BaseException as error:
        flight.end(error=error)
