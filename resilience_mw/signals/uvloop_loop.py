"""Utilization of uvloop, from libuv's own idle-time metric (the one that Node reports).

uvloop exposes no metrics, but its extension module exports libuv's symbols, and
`libuv_get_loop_t_ptr` gives the loop's address. Calls go through `ctypes.PyDLL`, which keeps the
GIL: they last nanoseconds, and the loop cannot be closed under them.
"""

from __future__ import annotations

import sys
import threading
import time
import weakref
from asyncio import AbstractEventLoop
from typing import Any

from .meter import LoopMeter, LoopReading

_IDLE_TIME = 1
"""`UV_METRICS_IDLE_TIME` of `uv_loop_option` in uv.h."""

_METRICS_WORDS = 64
"""Room for `uv_metrics_t`: 16 words today, of which the first counts loop turns."""


def uv_meter(loop: AbstractEventLoop) -> UvMeter | None:
    """Switch libuv's idle metric on for `loop`; `None` if it is no uvloop or lacks the symbols.

    libuv has no way to switch it off again: it costs one extra poll in a turn that would block.
    """
    uvloop = sys.modules.get("uvloop")
    if uvloop is None or not isinstance(loop, uvloop.Loop):
        return None
    try:
        return UvMeter(loop, uvloop.loop)
    except (ImportError, OSError, AttributeError, ValueError):
        return None


class UvMeter(LoopMeter):
    """Reads libuv's counters of one loop. Other threads get the last reading made by its own."""

    source = "uv"
    __slots__ = (
        "_first_idle",
        "_first_turn",
        "_idle_time",
        "_info",
        "_loop",
        "_metrics",
        "_now",
        "_pointer",
        "_thread",
        "_turn",
        "_turn_at",
    )

    def __init__(self, loop: AbstractEventLoop, module: Any) -> None:
        import ctypes

        library = ctypes.PyDLL(module.__file__)
        address = ctypes.pythonapi.PyCapsule_GetPointer
        address.restype = ctypes.c_void_p
        address.argtypes = (ctypes.py_object, ctypes.c_char_p)
        self._pointer = ctypes.c_void_p(address(module.libuv_get_loop_t_ptr(loop), None))
        self._idle_time = library.uv_metrics_idle_time
        self._idle_time.restype = ctypes.c_uint64
        self._idle_time.argtypes = (ctypes.c_void_p,)
        self._info = library.uv_metrics_info
        self._info.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
        self._now = library.uv_now
        self._now.restype = ctypes.c_uint64
        self._now.argtypes = (ctypes.c_void_p,)
        self._metrics = (ctypes.c_uint64 * _METRICS_WORDS)()
        configure = library.uv_loop_configure
        configure.argtypes = (ctypes.c_void_p, ctypes.c_int)
        if configure(self._pointer, _IDLE_TIME) != 0:
            raise OSError("libuv refused to measure idle time")
        super().__init__()
        self._loop = weakref.ref(loop)
        self._thread = threading.get_ident()
        self._first_idle = self._idle_time(self._pointer)
        self._turn = self._first_turn = self._count()
        self._turn_at = self._since

    def _count(self) -> int:
        self._info(self._pointer, self._metrics)
        return int(self._metrics[0])

    def _readable(self) -> bool:
        """Whether libuv may be asked: after `close` it would read freed memory."""
        loop = self._loop()
        return (
            self._users > 0
            and loop is not None
            and not loop.is_closed()
            and threading.get_ident() == self._thread
        )

    def read(self, now: float) -> LoopReading:
        if not self._readable():
            return self._frozen(now)
        idle = (self._idle_time(self._pointer) - self._first_idle) * 1e-9
        busy = max(self._last.busy, now - self._since - idle)
        self._last = LoopReading(now, busy, self._count() - self._first_turn)
        return self._last

    def turn_started(self) -> float | None:
        """Return when this turn was first seen, at the earliest when its poll returned.

        libuv counts turns just before it polls, so reading a request and running its task share
        one count. The clock of the loop is the better start, but every timer set in the turn moves
        it forward; the first caller's value is kept.
        """
        if not self._readable():
            return None
        turn = self._count()
        if turn != self._turn:
            self._turn = turn
            # Whole milliseconds, rounded down: never later than the poll, up to 1 ms before it.
            self._turn_at = min(time.monotonic(), self._now(self._pointer) * 1e-3)
        return self._turn_at
