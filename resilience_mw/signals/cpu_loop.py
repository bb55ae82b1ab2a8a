"""The fallback for loops that show neither a selector nor libuv: time the thread wanted the CPU."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref

from .meter import LoopMeter, LoopReading

_thread_time = getattr(time, "thread_time", time.process_time)


class CpuMeter(LoopMeter):
    """CPU time of the loop's thread and, on Linux, its time in the run queue.

    Measured against event-loop utilization this sees stolen CPU but not waits for the GIL, and
    without the run queue it reads about the share of the CPU that the thread is given.
    Readings are for the thread that attached; others get its last one.
    """

    source = "cpu"
    __slots__ = ("_close", "_file", "_first", "_thread")

    def __init__(self, schedstat: str = "/proc/thread-self/schedstat") -> None:
        super().__init__()
        self._thread = threading.get_ident()
        self._file: int | None = None
        self._close: weakref.finalize[[int], CpuMeter] | None = None
        with contextlib.suppress(OSError):
            self._file = os.open(schedstat, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
            self._close = weakref.finalize(self, os.close, self._file)
        self._first = self._wanted()

    def _wanted(self) -> float:
        wanted: float = _thread_time()
        if self._file is not None:
            # Fields: nanoseconds run, nanoseconds waited in the run queue, time slices.
            # The first lags by up to a tick, so it is taken from the clock instead.
            try:
                wanted += int(os.pread(self._file, 64, 0).split()[1]) * 1e-9
            except (OSError, IndexError, ValueError):
                self._file = None
        return wanted

    def read(self, now: float) -> LoopReading:
        if self._users == 0 or threading.get_ident() != self._thread:
            return self._frozen(now)
        # Losing the run queue half-way must not make the counter run backwards.
        busy = max(self._last.busy, self._wanted() - self._first)
        self._last = LoopReading(now, busy, 0)
        return self._last

    def _release(self) -> None:
        if self._close is not None:
            self._close()
