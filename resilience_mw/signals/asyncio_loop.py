"""Utilization of asyncio's own loops, from the time their selector spends waiting.

`BaseEventLoop._run_once` calls `loop._selector.select(timeout)` exactly once a turn, on selector
loops and on the Windows proactor alike, so one wrapper on that instance sees idle time and turns.
"""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import Callable
from typing import Any, cast

from .meter import LoopMeter, LoopReading

Select = Callable[..., Any]


def select_meter(loop: asyncio.AbstractEventLoop) -> SelectMeter | None:
    """Wrap the selector of `loop`, or return `None` if the loop does not turn the way asyncio's do.

    A loop with its own `run_forever` (Qt bridges) may carry a selector that it never calls: the
    meter would read 100 % for ever, which is worse than no meter.
    """
    kind = type(loop)
    if getattr(kind, "_run_once", None) is not asyncio.BaseEventLoop._run_once:  # type: ignore[attr-defined]
        return None
    if not kind.run_forever.__module__.startswith("asyncio."):
        return None
    selector = getattr(loop, "_selector", None)
    try:
        return SelectMeter(selector)
    except (AttributeError, TypeError):
        return None


def _closed(selector: Any) -> bool:
    """Whether the loop was closed, its selector with it; a proactor does not tell and just dies."""
    get_map = getattr(selector, "get_map", None)
    return get_map is not None and get_map() is None


class SelectMeter(LoopMeter):
    """Adds up the time a selector blocks.

    A poll (timeout 0) is work, not idleness: the loop has callbacks ready and only looks for more.
    libuv counts the same way.
    """

    source = "select"
    __slots__ = (
        "_current",
        "_idle",
        "_previous",
        "_select",
        "_selector",
        "_turns",
        "_waiting",
        "_wrapped_before",
    )

    def __init__(self, selector: Any) -> None:
        super().__init__()
        self._selector = weakref.ref(selector)
        self._previous = self._current = self._since
        self._idle = 0.0
        self._waiting = 0.0
        self._turns = 0
        self._install(selector)

    def _install(self, selector: Any) -> None:
        self._wrapped_before = "select" in vars(selector)
        select = self._wrapper(selector.select)
        # Held by the selector alone: the meter must not keep it alive, and a wrapper that has died
        # was cut off.
        self._select = weakref.ref(select)
        selector.select = select

    def _wrapper(self, original: Select) -> Select:
        clock = time.monotonic

        def select(timeout: float | None = None) -> Any:
            if self._users == 0:
                return original(timeout)
            if timeout is not None and timeout <= 0:
                events = original(timeout)
                returned = clock()
            else:
                self._waiting = entered = clock()
                try:
                    events = original(timeout)
                finally:
                    self._waiting = 0.0
                returned = clock()
                self._idle += returned - entered
            self._previous = self._current
            self._current = returned
            self._turns += 1
            return events

        select.__wrapped__ = original  # type: ignore[attr-defined]
        return select

    def read(self, now: float) -> LoopReading:
        selector = self._selector()
        if self._users == 0 or selector is None or _closed(selector):
            return self._frozen(now)
        if self._select() is None:
            self._heal(selector, now)
        idle = self._idle
        if self._waiting:
            # Only another thread (an exporter) can read while the loop waits.
            idle += max(0.0, now - self._waiting)
        self._last = LoopReading(now, max(0.0, now - self._since - idle), self._turns)
        return self._last

    def _heal(self, selector: Any, now: float) -> None:
        """Wrap again after somebody put back the `select` of before us.

        What happened in between is unknown and must not read as overload, so it counts as idle.
        """
        self._idle = max(self._idle, now - self._since - self._last.busy)
        self._previous = self._current = now
        self._install(selector)

    def turn_started(self) -> float:
        return self._previous

    def this_turn_started(self) -> float:
        return self._current

    def _release(self) -> None:
        selector, select = self._selector(), cast(Any, self._select())
        if selector is None or select is None or vars(selector).get("select") is not select:
            # Somebody wrapped ours, and taking it out would cut theirs off: it passes through.
            return
        if self._wrapped_before:
            selector.select = select.__wrapped__
        else:
            del selector.select
