"""The apps that the tests serve: one for threads, one for an event loop, alike in what they do."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Iterable
from typing import Any

from resilience_mw.types import Environ, Receive, Scope, Send, StartResponse


def wsgi(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    """Answer `/sleep/SECONDS`, `/stream/PIECES` (one each 0.1 s), `/echo`, `/die`, `/pid`."""
    _, what, *rest = environ["PATH_INFO"].split("/")
    body = b"ok"
    if what == "sleep":
        time.sleep(float(rest[0]))
    elif what == "echo":
        body = environ["wsgi.input"].read()
    elif what == "die":
        os._exit(9)
    elif what == "pid":
        body = str(os.getpid()).encode()
    elif what == "stream":
        start_response("200 OK", [("Content-Type", "text/plain")])
        return _pieces(int(rest[0]))
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]


def _pieces(count: int) -> Iterable[bytes]:
    for _ in range(count):
        yield b"piece "
        time.sleep(0.1)


async def asgi(scope: Scope, receive: Receive, send: Send) -> None:
    """Do the same; also websockets that echo, and a lifespan that says what it hears."""
    if scope["type"] == "lifespan":
        await _lifespan(receive, send)
    elif scope["type"] == "websocket":
        await _websocket(receive, send)
    else:
        await _http(scope, receive, send)


async def _lifespan(receive: Receive, send: Send) -> None:
    for _ in range(2):
        kind = (await receive())["type"]
        print(kind, file=sys.stderr, flush=True)
        await send({"type": f"{kind}.complete"})


async def _websocket(receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": message["text"]})


async def _http(scope: Scope, receive: Receive, send: Send) -> None:
    _, what, *rest = scope["path"].split("/")
    body: bytes | None = b"ok"
    if what == "sleep":
        await asyncio.sleep(float(rest[0]))
    elif what == "echo":
        body = await _read(receive)
    elif what == "die":
        os._exit(9)
    elif what == "pid":
        body = str(os.getpid()).encode()
    headers: list[Any] = [(b"content-type", b"text/plain")]
    if what == "stream":
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for _ in range(int(rest[0])):
            await send({"type": "http.response.body", "body": b"piece ", "more_body": True})
            await asyncio.sleep(0.1)
        body = b""
    elif body is not None:
        headers.append((b"content-length", str(len(body)).encode()))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
    if body is not None:
        await send({"type": "http.response.body", "body": body})


async def _read(receive: Receive) -> bytes | None:
    body: bytes = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if not message.get("more_body"):
            return body


if os.environ.get("LOADING"):
    print("loading", file=sys.stderr, flush=True)
    time.sleep(float(os.environ["LOADING"]))

if os.environ.get("CRASH_AFTER"):
    import threading

    threading.Timer(float(os.environ["CRASH_AFTER"]), os._exit, (9,)).start()
