"""Apps that follow the script of each request, for both protocols."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from .script import WAIT, Boom, Call, Chunk, End, Fail, Pause, Start


async def play(scope: Any, receive: Any, send: Any) -> None:
    """Follow the script of the request, as an ASGI app."""
    call = Call.everyone[dict(scope["headers"])[b"x-call"].decode()]
    call.entered.set()
    started = ended = False
    for step in call.script:
        match step:
            case Start(status, headers):
                raw = [(name.encode(), value.encode()) for name, value in headers]
                await send({"type": "http.response.start", "status": status, "headers": raw})
                started = True
            case Chunk(data):
                await send({"type": "http.response.body", "body": data, "more_body": True})
            case Pause():
                await asyncio.wrap_future(call.pause())
            case Fail():
                raise Boom
            case End():
                await send({"type": "http.response.body"})
                ended = True
    if started and not ended:
        await send({"type": "http.response.body"})


def respond(environ: dict[str, Any], start_response: Any) -> Any:
    """Follow the script as a WSGI app: up to the start in the call, the rest in the body."""
    call = Call.everyone[environ["HTTP_X_CALL"]]
    call.entered.set()
    steps = iter(call.script)
    for step in steps:
        match step:
            case Start(status, headers):
                start_response(f"{status} Status", list(headers))
                break
            case Pause():
                call.pause().result(WAIT)
            case Fail():
                raise Boom
    return Body(call, steps)


class Body:
    """The rest of a script: chunks, and what `close` has to do after them."""

    def __init__(self, call: Call, steps: Iterator[Any]) -> None:
        self.call = call
        self.steps = steps

    def __iter__(self) -> Iterator[bytes]:
        for step in self.steps:
            match step:
                case Chunk(data):
                    yield data
                case Pause():
                    self.call.pause().result(WAIT)
                case Fail():
                    raise Boom
                case End():
                    return

    def close(self) -> None:
        for step in self.steps:
            match step:
                case Pause():
                    self.call.pause().result(WAIT)
                case Fail():
                    raise Boom
