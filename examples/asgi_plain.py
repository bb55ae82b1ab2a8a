"""An ASGI app without a framework.

Run it, and look:

    uvicorn asgi_plain:app
    curl -i http://127.0.0.1:8000/ http://127.0.0.1:8000/readyz
"""

from __future__ import annotations

import asyncio
from typing import Any

from resilience_mw import Config, Deadline, Limit, protect


async def hello(scope: Any, receive: Any, send: Any) -> None:
    """Wait for a backend, then answer."""
    if scope["type"] != "http":
        raise NotImplementedError(f"this app serves HTTP, not {scope['type']}")
    await asyncio.sleep(0.05)
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"6")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"hello\n"})


app = protect(
    hello,
    Config(limit=Limit(max_concurrent_requests=100), deadline=Deadline(timeout=10)),
)
