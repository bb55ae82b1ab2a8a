"""One request on its way through an ASGI proxy, and its response on the way back.

| phase | what ends it early, besides the client's leaving |
|---|---|
| getting a connection | `connect_timeout`, the request's deadline |
| sending the request | `idle_timeout`, the request's deadline |
| waiting for the response's head | `timeout`, the request's deadline |
| streaming the response | `idle_timeout` |

Whoever ends it cancels one scope around everything, and with it the request to the upstream: its
connection is closed, which is the only way to tell an HTTP/1 server that nobody waits any more.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, cast

import anyio
import httpcore

from ...asgi.exchange import send_reply
from ...context import remaining
from ...core.exchange import Reply
from ...types import Message, Receive, Scope, Send
from .errors import NO_CONNECTION, TIMEOUT, ClientGone, UpstreamLost, UpstreamUnreachable
from .failures import FAILURES, is_outage, reply_for, words
from .headers import Fields, Framing, response_fields
from .incoming import SAFE, to
from .leftovers import has_leftovers

if TYPE_CHECKING:
    from .asgi import ASGIProxy


class Call:
    """One request."""

    def __init__(self, proxy: ASGIProxy, scope: Scope, receive: Receive, send: Send) -> None:
        self.proxy = proxy
        self.upstream = proxy.upstream
        self.scope = scope
        self.receive = receive
        self.send = send
        left = remaining()
        self.ends = math.inf if left is None else anyio.current_time() + left
        """When the response must have begun, in the loop's time."""
        self.cancel = anyio.CancelScope(deadline=self.ends)
        self.watcher: asyncio.Task[None] | None = None
        self.gone = False
        self.started = False
        self.timeouts: dict[str, float | None] = {
            "connect": self.upstream.connect_timeout,
            "read": self.upstream.timeout,
            "write": self.upstream.idle_timeout,
        }

    async def run(self, method: bytes, target: bytes, head: Fields, framing: Framing) -> None:
        """Send the request, and pass the response on."""
        first = await self.receive()
        if first["type"] != "http.request":
            return
        body = RequestBody(self, first)
        if framing.length is not None:
            head.append((b"content-length", b"%d" % framing.length))
        elif framing.chunked or not body.is_empty:  # HTTP/2 bodies need no bounds
            head.append((b"transfer-encoding", b"chunked"))
        request = httpcore.Request(
            method,
            to(self.upstream, target),
            headers=head,
            content=body,
            extensions={"timeout": self.timeouts},
        )
        if body.is_empty:
            self.sent_all()
        try:
            reply = await self._exchange(request)
        finally:
            if self.watcher is not None:
                self.watcher.cancel()
        if reply is not None and not self.gone:
            await send_reply(reply, self.scope, self.send)

    async def _exchange(self, request: httpcore.Request) -> Reply | None:
        """Return what to answer, or ``None`` if the upstream has answered or nobody listens."""
        pool = self.proxy.pools.current()
        response = None
        failure: Exception | None = None
        with self.cancel:
            try:
                if not await self._slot(pool.slots):
                    return self._unreachable(NO_CONNECTION, "all connections are taken")
                try:
                    response = await pool.http.handle_async_request(request)
                    self.proxy.reach.answered()
                    await self._answer(response)
                    return None
                finally:
                    try:
                        if response is not None:
                            await response.aclose()
                    finally:
                        pool.slots.release()
            except (ClientGone, OSError):  # OSError: what servers raise when we send to nobody
                self.gone = True
            except FAILURES as error:
                failure = error
        if self.gone:
            return None
        if self.started:
            raise UpstreamLost(f"{self.upstream.url}: {words(failure or TimeoutError())}") from None
        if failure is None:
            return self._unreachable(TIMEOUT, "no answer in time")
        if is_outage(failure):
            self.proxy.reach.failed(words(failure))
        return self._unreachable(reply_for(failure), words(failure))

    async def _slot(self, slots: anyio.Semaphore) -> bool:
        with contextlib.suppress(anyio.WouldBlock):
            slots.acquire_nowait()
            return True
        with anyio.move_on_after(self.upstream.connect_timeout):
            await slots.acquire()
            return True
        return False

    async def _answer(self, response: httpcore.Response) -> None:
        self.cancel.deadline = math.inf
        self.timeouts["read"] = self.upstream.idle_timeout
        if response.status < 200:
            raise httpcore.RemoteProtocolError("it switched protocols unasked")
        self.started = True
        await self.send(
            {
                "type": "http.response.start",
                "status": response.status,
                "headers": response_fields(response.headers),
            }
        )
        self.watch()  # of a request that was not read to its end
        body = cast(AsyncGenerator[bytes, None], response.aiter_stream())
        async with contextlib.aclosing(body) as chunks:
            async for chunk in chunks:
                await self.send({"type": "http.response.body", "body": chunk, "more_body": True})
        if has_leftovers(response.stream):
            await response.extensions["network_stream"].aclose()
        await self.send({"type": "http.response.body", "body": b""})

    def _unreachable(self, reply: Reply, why: str) -> Reply:
        if self.upstream.raises and self.scope["method"] in SAFE and reply.status >= 500:
            raise UpstreamUnreachable(reply, why)
        return reply

    def sent_all(self) -> None:
        """Note that the request has been read: the upstream's time begins, and nothing but a
        disconnect can come from the client."""
        self.cancel.deadline = min(self.ends, anyio.current_time() + self.upstream.timeout)
        self.watch()

    def watch(self) -> None:
        """Listen for the client's leaving, from now on."""
        if self.watcher is None:
            self.watcher = asyncio.ensure_future(self._watch())

    async def _watch(self) -> None:
        while (await self.receive())["type"] != "http.disconnect":
            pass
        self.gone = True
        self.cancel.cancel()


class RequestBody:
    """The request's body as httpcore reads it: chunk by chunk, as the client sends them."""

    def __init__(self, call: Call, first: Message) -> None:
        self._call = call
        self._first: Message | None = first
        self._done = self.is_empty = not first.get("body") and not first.get("more_body")

    def __aiter__(self) -> RequestBody:
        return self

    async def __anext__(self) -> bytes:
        while not self._done:
            message, self._first = self._first, None
            if message is None:
                message = await self._call.receive()
            if message["type"] != "http.request":
                raise ClientGone
            if not message.get("more_body"):
                self._done = True
                self._call.sent_all()
            if message.get("body"):
                chunk: bytes = message["body"]
                return chunk
        raise StopAsyncIteration
