"""Apps for the runner: each path takes its time in another way."""

from __future__ import annotations

import asyncio
import atexit
import os
import sys
import time
from typing import Any

from resilience_mw.asgi import Guard
from resilience_mw.core import Gate, HealthPolicy

SHUTDOWN = float(os.environ.get("APP_SHUTDOWN", "0"))
STARTUP = float(os.environ.get("APP_STARTUP", "0"))


def say(what: str) -> None:
    """Leave a line in the server's output."""
    print(f"app: {what}", flush=True)


if "APP_EXITS" in os.environ:
    raise SystemExit(0)

if os.path.exists(os.environ.get("APP_BREAKS", "")):
    raise RuntimeError("this release is broken")

if "APP_IMPORT" in os.environ:
    say("importing")
    time.sleep(float(os.environ["APP_IMPORT"]))


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Serve everything below."""
    if scope["type"] == "lifespan":
        await lifespan(receive, send)
    elif scope["type"] == "websocket":
        await websocket(receive, send)
    else:
        await http(scope, receive, send)


async def lifespan(receive: Any, send: Any) -> None:
    """Start and end slowly, if told so, and say so."""
    await receive()
    if os.environ.get("APP_DIES"):
        os._exit(7)
    try:
        await asyncio.sleep(STARTUP)
    except asyncio.CancelledError:
        say("startup cancelled")
        raise
    if os.environ.get("APP_FAILS"):
        await send({"type": "lifespan.startup.failed", "message": "no database"})
        return
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await asyncio.sleep(SHUTDOWN)
    say("shut down")
    await send({"type": "lifespan.shutdown.complete"})


async def websocket(receive: Any, send: Any) -> None:
    """Echo, and say with which code it ended."""
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": message["text"]})
    say(f"websocket ended with {message['code']}")


async def http(scope: Any, receive: Any, send: Any) -> None:
    """`/slow/2` waits 2 s, `/stream/2` sends for 2 s, `/block/2` blocks the loop, `/echo` reads."""
    _, kind, *rest = scope["path"].split("/")
    seconds = float(rest[0]) if rest and rest[0] else 0.0
    body = b"done"
    if kind == "slow":
        await asyncio.sleep(seconds)
    elif kind == "block":
        time.sleep(seconds)  # noqa: ASYNC251 - what a careless handler does
    elif kind == "echo":
        body = await read(receive)
    elif kind == "pid":
        body = str(os.getpid()).encode()
    elif kind == "big":
        body = bytes(50_000_000)
    elif kind == "say":
        body = rest[0].encode()
    elif kind == "die":
        os._exit(9)
    elif kind == "arrived":
        body = str(time.monotonic() - scope["resilience_mw.arrived"]).encode()
    elif kind == "stream":
        await stream(send, seconds)
        return
    headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def stream(send: Any, seconds: float) -> None:
    """Send twenty lines."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for number in range(20):
        line = f"{number}\n".encode()
        await send({"type": "http.response.body", "body": line, "more_body": True})
        await asyncio.sleep(seconds / 20)
    await send({"type": "http.response.body", "body": b"end\n"})


async def read(receive: Any) -> bytes:
    """Read a whole body."""
    body = b""
    while True:
        message = await receive()
        body += bytes(message.get("body", b""))
        if not message.get("more_body", False):
            return body


def factory() -> Any:
    """Make the app."""
    return app


def wsgi(environ: Any, start_response: Any) -> list[bytes]:
    """Answer at once."""
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "4")])
    return [b"wsgi"]


queued = Guard(app, HealthPolicy(), Gate(1, max_queue=10, max_wait=60.0, exempt=("/x",)))
"""One at a time, and others wait."""


class Counted(Guard):
    """A guard that knows how often it was called, which a refusal in the protocol does not do."""

    calls = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            self.calls += 1
        await super().__call__(scope, receive, send)


async def counting(scope: Any, receive: Any, send: Any) -> None:
    """Tell how often the guard was called."""
    if scope["type"] == "http" and scope["path"] == "/calls":
        scope = {**scope, "path": f"/say/{one.calls}"}
    await app(scope, receive, send)


one = Counted(counting, HealthPolicy(), Gate(1, exempt=("/calls",)))
"""One at a time, and others are refused."""


async def bare(scope: Any, receive: Any, send: Any) -> None:
    """An app that knows no lifespan."""
    assert scope["type"] == "http"
    await http(scope, receive, send)


async def parting(scope: Any, receive: Any, send: Any) -> None:
    """Serve; the process says so when it ends."""
    if scope["type"] == "lifespan":
        atexit.register(print, "farewell of a process that served", file=sys.stderr, flush=True)
    await app(scope, receive, send)
