"""The least ASGI app, and the least WSGI app."""

from __future__ import annotations

import os
from typing import Any

BODY = os.environ.get("HELLO", "ok").encode()
HEADERS = [(b"content-length", str(len(BODY)).encode())]


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answer 200 to everything."""
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": BODY})


def wsgi(environ: Any, start_response: Any) -> list[bytes]:
    """Answer 200 to everything."""
    start_response("200 OK", [("Content-Length", str(len(BODY)))])
    return [BODY]
