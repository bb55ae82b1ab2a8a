"""One app for each protocol: a page that takes a while, and a view of the guard from outside it."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any

from resilience_mw import Config, Limit, protect

LIMIT = 4
SECONDS = float(os.environ.get("PAGE_SECONDS", "0.05"))
CONFIG = Config(limit=Limit(max_concurrent_requests=LIMIT))


async def page(scope: Any, receive: Any, send: Any) -> None:
    """Wait for a backend, then answer."""
    if scope["type"] != "http":
        raise NotImplementedError(f"this app serves HTTP, not {scope['type']}")
    await asyncio.sleep(SECONDS)
    await _answer(send, b"done")


guarded = protect(page, CONFIG)


async def asgi(scope: Any, receive: Any, send: Any) -> None:
    """Tell how many requests are in flight, uncounted; pass everything else."""
    if scope["type"] == "http" and scope["path"] == "/inflight":
        await _answer(send, str(guarded.snapshot().inflight).encode())
    else:
        await guarded(scope, receive, send)


async def _answer(send: Any, body: bytes) -> None:
    headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def wsgi_page(environ: Any, start_response: Any) -> list[bytes]:
    """Wait for a backend, then answer."""
    time.sleep(SECONDS)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "4")])
    return [b"done"]


wsgi_guarded = protect(wsgi_page, CONFIG)


def wsgi(environ: Any, start_response: Any) -> Any:
    """Tell how many requests are in flight, uncounted; pass everything else."""
    if environ["PATH_INFO"] != "/inflight":
        return wsgi_guarded(environ, start_response)
    body = str(wsgi_guarded.snapshot().inflight).encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
