"""How busy the threads of a WSGI server are, and how busy the CPU is with this process."""

from __future__ import annotations

import threading
import time
from typing import Any, NamedTuple

from .cores import effective_cores

SEEN_FOR = 60.0
"""Seconds for which a thread counts as part of the pool after it last took a request."""

_MAX_SEEN = 4096
"""Threads remembered at most: servers that make one a request would fill memory otherwise."""


class ThreadReading(NamedTuple):
    """Cumulative counters of a thread pool: subtract two readings to get a window.

    Attributes:
        at: monotonic seconds of the reading.
        busy: thread-seconds spent in requests.
        cpu: seconds of CPU that the whole process has used.
        pool: threads that there are, as far as is known; at least 1.
        cores: cores that the process may use.
    """

    at: float
    busy: float
    cpu: float
    pool: int
    cores: float


def utilization(before: ThreadReading, after: ThreadReading) -> float:
    """Return how busy the window between two readings was, in [0, 1].

    It is the larger of busy threads over the pool and process CPU over the cores: a pool that waits
    for a database is full at no CPU, and a CPU can be full with half the threads.
    """
    elapsed = after.at - before.at
    if elapsed <= 0.0:
        return 0.0
    threads = (after.busy - before.busy) / (elapsed * after.pool)
    cpu = (after.cpu - before.cpu) / (elapsed * after.cores)
    return min(1.0, max(0.0, threads, cpu))


class ThreadMeter:
    """Counts the threads that are inside a request; called under the lock of whoever feeds it.

    Args:
        pool_size: threads of the server, if known (see `pool_size`). Otherwise the threads seen
            within `SEEN_FOR` seconds stand for it, which is too few while a pool still grows.
        cores: cores the process may use; measured when not given.
    """

    __slots__ = ("_active", "_busy", "_last", "_seen", "_since", "_worked", "cores", "pool_size")

    def __init__(self, pool_size: int | None = None, cores: float | None = None) -> None:
        self.pool_size = pool_size
        self.cores = effective_cores() if cores is None else cores
        self._since = time.monotonic()
        self._active = 0
        self._busy = 0.0
        self._seen: dict[int, float] = {}
        self._worked = 0.0
        self._last = self.read(self._since)

    def enter(self, now: float, thread_id: int) -> None:
        """Note that a thread took a request."""
        # Sums of times, not an integral over events: threads may report in any order.
        self._busy -= now - self._since
        self._active += 1
        self._seen[thread_id] = now
        if len(self._seen) > _MAX_SEEN:
            self._forget(now)

    def exit(self, now: float) -> None:
        """Note that some thread is done with its request."""
        self._busy += now - self._since
        self._active -= 1

    def read(self, now: float) -> ThreadReading:
        """Return the counters at `now`, requests that still run included."""
        busy = self._busy + self._active * (now - self._since)
        return ThreadReading(now, busy, time.process_time(), self._pool(now), self.cores)

    def worked(self, now: float) -> float:
        """Return the seconds of full use so far: their growth over time is the utilization."""
        reading = self.read(now)
        self._worked += utilization(self._last, reading) * max(0.0, now - self._last.at)
        self._last = reading
        return self._worked

    def _pool(self, now: float) -> int:
        if self.pool_size is not None:
            return max(1, self.pool_size)
        if any(seen < now - SEEN_FOR for seen in self._seen.values()):
            self._forget(now)
        # A request longer than that keeps its thread busy, forgotten or not.
        return max(1, self._active, len(self._seen))

    def _forget(self, now: float) -> None:
        recent = {thread: at for thread, at in self._seen.items() if at >= now - SEEN_FOR}
        if len(recent) > _MAX_SEEN:
            recent.clear()
        self._seen = recent


def pool_size(environ: dict[str, Any]) -> int | None:
    """Return how many threads serve requests like this one, or `None` where the server hides it.

    Known for single-threaded servers, Waitress, and every server whose threads are of a
    `ThreadPoolExecutor` (Gunicorn's gthread). Call it from the thread that serves the request.
    """
    if environ.get("wsgi.multithread") is False:
        return 1
    try:
        channel = getattr(environ.get("waitress.client_disconnected"), "__self__", None)
        if channel is not None:
            return int(channel.server.adj.threads)
        # A worker thread of an executor gets a weak reference to it as its first argument.
        executor = threading.current_thread()._args[0]()  # type: ignore[attr-defined]
        return int(executor._max_workers)
    except Exception:
        return None
