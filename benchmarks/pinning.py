"""Keep server and generator out of each other's way."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def pinned() -> Iterator[int | None]:
    """Give one CPU to servers and the others to this process, and yield the servers' CPU.

    A generator that competes with the server for one CPU measures the scheduler. Where there is
    only one, or the system cannot pin, nothing changes and `None` is yielded.
    """
    available = _available()
    if len(available) < 2:
        yield None
        return
    server, *ours = sorted(available)
    os.sched_setaffinity(0, ours)
    try:
        yield server
    finally:
        os.sched_setaffinity(0, available)


def _available() -> set[int]:
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
