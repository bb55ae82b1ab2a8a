"""Two places behind the middleware where requests queue, and a view of them from outside it."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

from anyio.to_thread import current_default_thread_limiter
from fastapi import FastAPI

from resilience_mw import protect

TOKENS = 40
CONNECTIONS = 10
SECONDS = 0.1

api = FastAPI()
connections = asyncio.Semaphore(CONNECTIONS)
lock = threading.Lock()
running = 0


@api.get("/thread")
def thread() -> str:
    """Block one of the framework's threads."""
    global running
    with lock:
        running += 1
    time.sleep(SECONDS)
    with lock:
        running -= 1
    return "done"


@api.get("/pool")
async def pool() -> str:
    """Hold one of a few connections."""
    async with connections:
        await asyncio.sleep(SECONDS)
    return "done"


guarded = protect(api)


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Tell how things stand, uncounted; pass everything else."""
    if scope["type"] != "http" or scope["path"] != "/state":
        await guarded(scope, receive, send)
        return
    seen = guarded.snapshot()
    tokens = current_default_thread_limiter().borrowed_tokens
    body = f"{seen.inflight} {tokens} {running} {seen.elu or 0.0}".encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
