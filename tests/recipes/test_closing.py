"""`Closing`, which the recipes for ASGI servers put outermost."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from resilience_mw.runner.closing import Closing


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answer, and ask to keep the connection."""
    headers = [(b"connection", b"keep-alive"), (b"x-own", b"1")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"ok"})


async def sent_by(outer: Closing, scope: dict[str, Any]) -> list[Any]:
    """Serve one request, and return the messages."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    await outer(scope, receive, send)
    return sent


@pytest.mark.parametrize(
    ("scope", "draining", "connection"),
    [
        ({"type": "http", "http_version": "1.1"}, True, b"close"),
        ({"type": "http"}, True, b"close"),
        ({"type": "http", "http_version": "1.1"}, False, b"keep-alive"),
        ({"type": "http", "http_version": "2"}, True, b"keep-alive"),
        ({"type": "websocket"}, True, b"keep-alive"),
    ],
)
def test_responses_close_their_connections_in_a_drain(scope, draining, connection):
    """Of HTTP/1 only, and in the place of what the app says."""
    outer = Closing(app)
    outer.draining = draining
    start, body = asyncio.run(sent_by(outer, scope))
    assert dict(start["headers"]) == {b"connection": connection, b"x-own": b"1"}
    assert body["body"] == b"ok"
