"""Call an ASGI app as a server does, on a real loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import uvloop

Result = TypeVar("Result")
Message = MutableMapping[str, Any]
App = Callable[[Any, Any, Any], Coroutine[Any, Any, None]]

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}

PATIENCE = 10.0
"""Seconds after which something that should have happened long ago fails the test."""


def run(main: Coroutine[Any, Any, Result], loop: str = "asyncio") -> Result:
    """Run ``main`` on a new loop, and check that it leaves no task behind."""

    async def limited() -> Result:
        result = await asyncio.wait_for(main, PATIENCE)
        for _ in range(10):
            left = asyncio.all_tasks() - {asyncio.current_task()}
            if not left:
                return result
            await asyncio.sleep(0)
        raise AssertionError(f"tasks left behind: {left}")

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        return runner.run(limited())


async def until(condition: Callable[[], object]) -> None:
    """Let the loop turn until ``condition`` holds."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - any condition, not only one that tells us
            await asyncio.sleep(0.001)


def scope(
    path: str = "/",
    *,
    method: str = "GET",
    headers: Iterable[tuple[bytes, bytes]] = (),
    root: str = "",
    **more: Any,
) -> dict[str, Any]:
    """Return an HTTP scope."""
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.5"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": root + path,
        "raw_path": (root + path).encode(errors="surrogatepass"),
        "root_path": root,
        "query_string": b"",
        "headers": [(b"host", b"example.org"), *headers],
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 80),
        "extensions": {},
        **more,
    }


@dataclass
class Exchange:
    """One request as the server sees it."""

    scope: dict[str, Any] = field(default_factory=scope)
    body: Sequence[Message] = ({"type": "http.request", "body": b"", "more_body": False},)
    """What ``receive`` returns; then it waits for `leave`."""
    sent: list[Message] = field(default_factory=list)
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    hold_sends: bool = False
    """Whether ``send`` waits for `readable`, as a server does whose client reads slowly."""
    readable: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._body = iter(self.body)

    async def receive(self) -> Message:
        """Be the server's ``receive``."""
        message = next(self._body, None)
        if message is not None:
            return message
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Be the server's ``send``."""
        if self.hold_sends:
            await self.readable.wait()
        self.sent.append(message)

    async def through(self, app: Any) -> Exchange:
        """Serve the request with ``app``."""
        await app(self.scope, self.receive, self.send)
        return self

    def start(self, app: Any) -> asyncio.Task[Exchange]:
        """The same in a task of its own."""
        return asyncio.create_task(self.through(app))

    @property
    def starts(self) -> list[Message]:
        """The response starts, of which there should be one."""
        return [message for message in self.sent if message["type"] == "http.response.start"]

    @property
    def status(self) -> int | None:
        """Status of the one response; ``None`` if there is none."""
        assert len(self.starts) <= 1, self.sent
        return self.starts[0]["status"] if self.starts else None

    @property
    def headers(self) -> dict[bytes, bytes]:
        """Headers of the response."""
        headers = self.starts[0]["headers"]
        assert len({name for name, _ in headers}) == len(headers)
        return dict(headers)

    @property
    def text(self) -> bytes:
        """Body of the response."""
        return b"".join(
            message.get("body", b"")
            for message in self.sent
            if message["type"] == "http.response.body"
        )


async def call(app: Any, path: str = "/", **facts: Any) -> Exchange:
    """Send one request through ``app``."""
    return await Exchange(scope(path, **facts)).through(app)


async def hello(scope: Any, receive: Any, send: Any) -> None:
    """Answer at once."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ok"})


def aside(app: Any) -> App:
    """Return ``app`` behind a middleware that does nothing, but stands between two guards."""

    async def middleware(scope: Any, receive: Any, send: Any) -> None:
        await app(scope, receive, send)

    return middleware


class Holding:
    """An app that holds each request until it is told to go on."""

    def __init__(self) -> None:
        self.entered = 0
        self.go = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.entered += 1
        await self.go.wait()
        await hello(scope, receive, send)
