"""Apps with checks, for servers to import."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from resilience_mw import Backpressure, Config, Deadline, Health, Limit, protect
from resilience_mw.health import Check, CheckFailed
from tests.health.lifespans import live

SWITCH = Path(os.environ.get("TEST_SWITCH", "/nonexistent/switch"))
"""While this file is there, the critical check fails."""


class Where:
    """Passes, and notes in which process and thread."""

    seen = ""

    async def __call__(self) -> None:
        """Be asked."""
        await asyncio.sleep(0)
        self.seen = f"{os.getpid()} {threading.current_thread().name}"


def switched() -> None:
    """Pass while nobody has thrown the switch."""
    if SWITCH.exists():
        raise CheckFailed("switched off")


def hang() -> None:
    """Never return."""
    threading.Event().wait()


def config(where: Callable[[], Any]) -> Config:
    """One request at a time, and three checks."""
    return Config(
        deadline=Deadline(timeout=5),
        limit=Limit(max_concurrent_requests=1),
        backpressure=Backpressure(enabled=False),
        health=Health(
            checks={
                "switch": Check(switched, interval=0.05),
                "where": Check(where, interval=0.05),
                "hangs": Check(hang, critical=False, interval=0.05, timeout=0.05),
            },
            trusted=("127.0.0.1",),
        ),
    )


in_asgi, in_wsgi = Where(), Where()


async def asgi_app(scope, receive, send):
    """Tell where the coroutine check ran; wait for a second at `/wait`."""
    if scope["type"] == "lifespan":
        await live(receive, send)
        return
    if scope["path"] == "/wait":
        await asyncio.sleep(1.0)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": in_asgi.seen.encode()})


def wsgi_app(environ, start_response):
    """Tell where the coroutine check ran; wait for a second at `/wait`."""
    if environ["PATH_INFO"] == "/wait":
        time.sleep(1.0)
    body = in_wsgi.seen.encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


asgi = protect(asgi_app, config(in_asgi))
wsgi = protect(wsgi_app, config(in_wsgi))
