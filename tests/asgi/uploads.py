"""Requests whose bodies come in parts, or not at all."""

from __future__ import annotations

from resilience_mw.asgi import Guard
from resilience_mw.core import DeadlinePolicy, Gate

from .harness import Exchange, Message, hello, scope

SOON = 0.04


def part(body: bytes = b"x", more: bool = True) -> Message:
    """Return a part of a body."""
    return {"type": "http.request", "body": body, "more_body": more}


def upload(*parts: Message, **facts) -> Exchange:
    """Return a request of which these parts arrive, and then nothing."""
    return Exchange(scope(method="POST", **facts), parts)


def guarded(app, receive_timeout=SOON, timeout=None, **options):
    """Return a guard with a receive timeout and a gate, and both policies."""
    deadline, gate = DeadlinePolicy(timeout, receive_timeout=receive_timeout, **options), Gate(1)
    return Guard(app, deadline, gate), deadline, gate


def assert_unreceived(exchange: Exchange) -> None:
    """Check the answer to a request that did not arrive in time."""
    assert (exchange.status, exchange.text) == (408, b"Request Timeout")
    assert exchange.headers[b"connection"] == b"close"
    assert len(exchange.sent) == 2


async def read(receive) -> tuple[bytes, str]:
    """Read a body; return it and the type of the last message."""
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return body, message["type"]


async def read_all(scope, receive, send):
    """Read the body, and answer."""
    await read(receive)
    await hello(scope, receive, send)
