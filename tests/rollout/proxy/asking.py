"""Requests through an ASGI proxy, and upstreams that fail."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections.abc import Awaitable, Callable
from typing import Any

from resilience_mw.rollout.proxy.asgi import proxy
from resilience_mw.rollout.proxy.asgi_proxy import ASGIProxy
from tests.asgi.harness import run

LOOPS = ["asyncio", "uvloop"]


def through(url: str, main: Callable[[ASGIProxy], Awaitable[Any]], **options: Any) -> Any:
    """Run a test with a proxy that is closed at its end."""

    async def whole() -> Any:
        app = proxy(url, **options)
        try:
            return await main(app)
        finally:
            await app.aclose()

    return run(whole())


def nobody() -> str:
    """Return the URL of a port at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


def resets(connection: socket.socket, head: bytes) -> None:
    """Begin an answer, and drop the connection as a process that dies does."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc")
    time.sleep(0.1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


async def eventually(seen: Callable[[], bool]) -> None:
    """Wait for what another process does."""
    deadline = time.monotonic() + 10
    while not await asyncio.to_thread(seen):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)
