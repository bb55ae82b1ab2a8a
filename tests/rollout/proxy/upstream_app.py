"""The stack behind the proxy: an ASGI app that tells what it sees."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from typing import Any
from urllib.parse import parse_qsl

SEEN: Counter[str] = Counter()

CHUNK = b"x" * 65_536


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Serve by the first part of the path; what is unknown is an echo."""
    if scope["type"] != "http":
        return
    asked = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
    handler = HANDLERS.get(scope["path"], echo)
    SEEN[f"entered {scope['path']}"] += 1
    await handler(scope, receive, send, asked)


async def answer(
    send: Any, body: bytes = b"", *headers: tuple[bytes, bytes], status: int = 200
) -> None:
    """Send a whole response."""
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": status, "headers": [length, *headers]})
    await send({"type": "http.response.body", "body": body})


async def read(receive: Any) -> int | None:
    """Return how long the body is; ``None`` if the client has left."""
    length = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        length += len(message.get("body", b""))
        if not message.get("more_body"):
            return length


async def left(receive: Any) -> None:
    """Wait for the client to leave."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def echo(scope: Any, receive: Any, send: Any, asked: Any) -> None:
    """Say what arrived."""
    report = {
        "method": scope["method"],
        "path": scope["raw_path"].decode("latin-1"),
        "query": scope["query_string"].decode("latin-1"),
        "headers": [(n.decode("latin-1"), v.decode("latin-1")) for n, v in scope["headers"]],
        "body": await read(receive),
    }
    await answer(send, json.dumps(report).encode())


async def state(scope: Any, receive: Any, send: Any, asked: Any) -> None:
    """Say what happened so far."""
    await answer(send, json.dumps(SEEN).encode())


async def upload(scope: Any, receive: Any, send: Any, asked: Any) -> None:
    """Count the body, and whether it ended."""
    length = await read(receive)
    if length is None:
        SEEN["left /upload"] += 1
    await answer(send, str(length).encode())


async def download(scope: Any, receive: Any, send: Any, asked: Any) -> None:
    """Send so many bytes, with a length or in chunks."""
    size = int(asked["size"])
    length = [(b"content-length", b"%d" % size)] if "length" in asked else []
    await send({"type": "http.response.start", "status": 200, "headers": length})
    while size > 0:
        chunk = CHUNK[:size]
        size -= len(chunk)
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def hang(scope: Any, receive: Any, send: Any, asked: Any) -> None:
    """Never answer, and count who leaves."""
    await left(receive)
    SEEN["left /hang"] += 1


async def drip(scope: Any, receive: Any, send: Any, asked: Any) -> None:
    """Begin to answer, and never end; count who leaves."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"drop", "more_body": True})
    await left(receive)
    SEEN["left /drip"] += 1


async def nothing(scope: Any, receive: Any, send: Any, asked: Any) -> None:
    """Answer with a status that has no body."""
    start = {"type": "http.response.start", "status": int(asked["status"]), "headers": []}
    await send(start)
    await send({"type": "http.response.body", "body": b""})


async def various(scope: Any, receive: Any, send: Any, asked: Any) -> None:
    """Answer with what a client library would act upon."""
    await answer(
        send,
        gzip.compress(b"packed"),
        (b"location", b"/elsewhere"),
        (b"content-encoding", b"gzip"),
        (b"set-cookie", b"a=1"),
        (b"set-cookie", b"b=2"),
        (b"via", b"1.0 cache"),
        (b"connection", b"X-One-Hop"),
        (b"x-one-hop", b"gone"),
        status=302,
    )


async def duplex(scope: Any, receive: Any, send: Any, asked: Any) -> None:
    """Send back each part of the body as it comes."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    more = True
    while more:
        message = await receive()
        more = message.get("more_body", False)
        body = message.get("body", b"")
        await send({"type": "http.response.body", "body": body, "more_body": more})


HANDLERS = {
    "/duplex": duplex,
    "/state": state,
    "/upload": upload,
    "/download": download,
    "/hang": hang,
    "/drip": drip,
    "/nothing": nothing,
    "/various": various,
}
