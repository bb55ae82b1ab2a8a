"""The threads that Starlette, FastAPI and anyio share for sync code: anyio's default limiter.

A saturated pool is invisible to the event loop (0.03 utilization with 80 calls waiting for 40
tokens), so its queue is a signal of its own. Call these inside the event loop.
"""

from __future__ import annotations

import asyncio
import sys
import weakref
from typing import Any

from .running import running_loop

_limiters: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = weakref.WeakKeyDictionary()


def pool_waiting() -> int:
    """Return how many calls wait for a token; 0 if anyio is not in use here."""
    limiter = _limiter()
    if limiter is None or limiter.borrowed_tokens < limiter.total_tokens:
        # Only a full limiter has a queue, and statistics() copies every borrower.
        return 0
    waiting: int = limiter.statistics().tasks_waiting
    return waiting


def pool_borrowed() -> int | None:
    """Return how many threads work right now; `None` if anyio is not in use here."""
    limiter = _limiter()
    return None if limiter is None else limiter.borrowed_tokens


def pool_total() -> float | None:
    """Return how many may work at once (`math.inf`: any number); `None` as in `pool_borrowed`."""
    limiter = _limiter()
    return None if limiter is None else limiter.total_tokens


def _limiter() -> Any:
    """Return the running loop's default limiter.

    anyio makes one on first use. That is no side effect worth avoiding (the first sync endpoint
    would get the same object), but importing anyio for a program without it would be.
    """
    to_thread = sys.modules.get("anyio.to_thread")
    if to_thread is None:
        return None
    loop = running_loop()
    if loop is None:
        return _current(to_thread)
    limiter = _limiters.get(loop)
    if limiter is None:
        # Remembered: where sniffio is installed, anyio is lost in a timer's callback.
        limiter = _current(to_thread)
        if limiter is not None:
            _limiters[loop] = limiter
    return limiter


def _current(to_thread: Any) -> Any:
    try:
        return to_thread.current_default_thread_limiter()
    except Exception:
        # Outside a loop anyio raises an error of its own, under other names in other releases.
        return None
