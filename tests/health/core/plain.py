"""An app that is protected with whatever the environment says."""

from __future__ import annotations

from resilience_mw import protect


async def hello(scope, receive, send):
    """Answer."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"hello"})


app = protect(hello)
