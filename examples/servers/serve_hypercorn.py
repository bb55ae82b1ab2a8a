"""Hypercorn with the times of the options, and a drain at SIGTERM.

python serve_hypercorn.py app:app 0.0.0.0:8000
"""

from __future__ import annotations

import asyncio
import importlib
import signal
import sys
from typing import Any

from hypercorn.asyncio import serve
from hypercorn.config import Config as Hypercorn

from resilience_mw.runner.closing import Closing
from resilience_mw.runner.wrap import wrap

MARGIN = 2.0


async def main(name: str, bind: str) -> int:
    """Serve until SIGTERM; returns the exit code."""
    module, _, attribute = name.partition(":")
    protected = wrap(getattr(importlib.import_module(module), attribute))  # unless it is already
    runner = protected.config.runner
    app: Any = Closing(protected.app)
    server = Hypercorn()
    server.bind = [bind]
    server.keep_alive_timeout = runner.keep_alive_timeout
    server.graceful_timeout = runner.shutdown_timeout

    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)

    async def drained() -> None:
        await told.wait()
        app.draining = True
        protected.drain()
        await asyncio.sleep(runner.drain_delay)

    async def overdue() -> None:
        await told.wait()
        await asyncio.sleep(runner.drain_delay + runner.shutdown_timeout + MARGIN)

    # Since Python 3.12 Hypercorn waits for open connections without an end: this is one.
    serving = asyncio.create_task(serve(app, server, shutdown_trigger=drained))
    limit = asyncio.create_task(overdue())
    await asyncio.wait({serving, limit}, return_when=asyncio.FIRST_COMPLETED)
    limit.cancel()
    if serving.done():
        await serving
        return 0
    serving.cancel()
    await asyncio.wait({serving}, timeout=MARGIN)
    return 1


if __name__ == "__main__":
    sys.path.insert(0, "")
    sys.exit(asyncio.run(main(*sys.argv[1:])))
