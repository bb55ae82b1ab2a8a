"""Which event loop runs here, if any."""

from __future__ import annotations

import asyncio


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the loop that runs in this thread; ``None`` = none of asyncio's does."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
