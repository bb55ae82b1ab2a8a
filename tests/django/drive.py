"""Send requests to a Django ASGI application on a running loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

_calls: list[asyncio.Task[None]] = []


class Call:
    """One ASGI request: `await Call(app, "/path").answer()`."""

    def __init__(self, app: Any, path: str, **scope: Any) -> None:
        self.messages: list[Any] = []
        self._left = asyncio.Event()
        self._read = False
        self.started = asyncio.Event()
        self.finished = asyncio.Event()
        whole = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "GET",
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "scheme": "http",
            "query_string": b"",
            "headers": [(b"host", b"testserver")],
            **scope,
        }
        self.task = asyncio.create_task(app(whole, self._receive, self._send))
        _calls.append(self.task)

    async def _receive(self) -> Any:
        if not self._read:
            self._read = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        self.messages.append(message)
        self.started.set()
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self.finished.set()

    def leave(self) -> None:
        """Be a client that disconnects."""
        self._left.set()

    @property
    def status(self) -> int:
        """Status of the response that has started."""
        status: int = self.messages[0]["status"]
        return status

    @property
    def body(self) -> bytes:
        """What has been sent so far."""
        return b"".join(message.get("body", b"") for message in self.messages[1:])

    async def answer(self) -> tuple[int, bytes]:
        """Wait for the whole response, though not for the app to end."""
        await asyncio.wait_for(self.finished.wait(), 20)
        return self.status, self.body


async def until(condition: Callable[[], bool]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def run(test: Callable[[], Awaitable[None]]) -> None:
    """Run an async test on a loop of its own, to the end of all its calls."""

    async def main() -> None:
        try:
            await test()
            if _calls:  # Django frees what a request holds after it has been answered
                _, unended = await asyncio.wait(_calls, timeout=20)
                assert not unended
        finally:
            _calls.clear()

    asyncio.run(main())
