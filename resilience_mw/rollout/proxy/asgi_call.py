"""One request on its way through an ASGI proxy, and its response on the way back.

| phase | what ends it early, besides the client's leaving |
|---|---|
| getting a connection | `connect_timeout`, the request's deadline |
| sending the request | `idle_timeout`, the request's deadline |
| waiting for the response's head | `timeout`, the request's deadline |
| streaming the response | `idle_timeout` |

Whatever ends it closes the connection to the upstream, which is the only way to tell an HTTP/1
server that nobody waits any more.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncGenerator, Coroutine
from typing import TYPE_CHECKING, Any, cast

import anyio
import httpcore

from ...asgi.exchange import send_reply
from ...context import remaining
from ...core.exchange import Reply
from ...types import Receive, Scope, Send
from ..fallback import SAFE
from .asgi_body import RequestBody
from .asgi_pool import Pool
from .asgi_stream import LAST_CHUNK, Stream
from .asgi_waits import Waits, calling
from .errors import BAD_REQUEST, NO_CONNECTION, ClientGone, UpstreamLost, UpstreamUnreachable
from .failures import FAILURES, check_status, is_outage, reply_for, words
from .headers import Fields, Framing, response_fields
from .incoming import to
from .leftovers import has_leftovers

if TYPE_CHECKING:
    from .asgi_proxy import ASGIProxy


class Call:
    """One request."""

    def __init__(self, proxy: ASGIProxy, scope: Scope, receive: Receive, send: Send) -> None:
        self.proxy = proxy
        self.upstream = proxy.upstream
        self.scope = scope
        self.send = send
        left = remaining()
        self.ends = math.inf if left is None else anyio.current_time() + left
        """When the response must have begun, in the loop's time."""
        self.waits = Waits(self.ends)
        self.body = RequestBody(receive, self.waits, self.sent_all, self.answered_early)
        self.cancel = anyio.CancelScope()
        self.tasks: list[asyncio.Task[None]] = []
        """What goes on beside the exchange: the rest of the request, and a look at the client."""
        self.gone = False
        self.started = False
        self.chunked = False
        self.timeouts: dict[str, float | None] = {
            "connect": self.upstream.connect_timeout,
            "read": None,  # until the response begins, the deadline counts
            "write": self.upstream.idle_timeout,
        }

    async def run(self, method: bytes, target: bytes, head: Fields, framing: Framing) -> None:
        """Send the request, and pass the response on."""
        self.body.left = framing.length
        try:
            empty = await self.body.peek()
        except ClientGone:
            return
        except httpcore.LocalProtocolError:
            await send_reply(BAD_REQUEST, self.scope, self.send)
            return
        if framing.length is not None:
            head.append((b"content-length", b"%d" % framing.length))
        elif framing.chunked or not empty:  # HTTP/2 bodies need no bounds
            self.chunked = True
            head.append((b"transfer-encoding", b"chunked"))
        request = httpcore.Request(
            method,
            to(self.upstream, target),
            headers=head,
            content=self.body,
            extensions={"timeout": self.timeouts},
        )
        try:
            reply = await self._exchange(request)
        finally:
            self.body.close()
            for task in self.tasks:
                task.cancel()
        if reply is not None and not self.gone:
            await send_reply(reply, self.scope, self.send)

    async def _exchange(self, request: httpcore.Request) -> Reply | None:
        """Return what to answer, or ``None`` if the upstream has answered or nobody listens."""
        pool = self.proxy.pools.current()
        failure: Exception | None = None
        with self.cancel:
            try:
                if not await self._slot(pool.slots):
                    return self._unreachable(NO_CONNECTION, "all connections are taken")
                try:
                    await self._use(pool, request)
                    return None
                finally:
                    pool.slots.release()
            except (ClientGone, OSError):  # OSError: what servers raise when we send to nobody
                self.gone = True
            except FAILURES as error:
                failure = error
        if failure is None or self.gone:
            return None
        if self.started:
            raise UpstreamLost(f"{self.upstream.url}: {words(failure)}") from None
        if is_outage(failure):
            self.proxy.reach.failed(words(failure))
        return self._unreachable(reply_for(failure), words(failure))

    async def _use(self, pool: Pool, request: httpcore.Request) -> None:
        """Have the request answered on one connection."""
        connection = await pool.take()
        response: httpcore.Response | None = None
        calling.set(self.waits)
        try:
            with anyio.CancelScope(shield=True):
                answer = response = await connection.handle_async_request(request)
            check_status(answer)
            self.proxy.reach.answered()
            await self._answer(answer, connection)
        finally:
            try:
                if response is not None:
                    with anyio.CancelScope(shield=True):
                        await response.aclose()
            finally:
                pool.give(connection, self.waits.stream)

    async def _slot(self, slots: anyio.Semaphore) -> bool:
        with contextlib.suppress(anyio.WouldBlock):
            slots.acquire_nowait()
            return True
        patience = min(self.upstream.connect_timeout, self.ends - anyio.current_time())
        with anyio.move_on_after(patience):
            await slots.acquire()
            return True
        return False

    async def _answer(
        self, response: httpcore.Response, connection: httpcore.AsyncHTTPConnection
    ) -> None:
        self.waits.deadline = math.inf
        self.timeouts["read"] = self.upstream.idle_timeout
        self.started = True
        await self.send(
            {
                "type": "http.response.start",
                "status": response.status,
                "headers": response_fields(response.status, response.headers),
            }
        )
        body = cast(AsyncGenerator[bytes, None], response.aiter_stream())
        async with contextlib.aclosing(body) as chunks:
            async for chunk in chunks:
                await self.send({"type": "http.response.body", "body": chunk, "more_body": True})
        if has_leftovers(connection):
            await response.extensions["network_stream"].aclose()
        await self.send({"type": "http.response.body", "body": b""})

    def _unreachable(self, reply: Reply, why: str) -> Reply:
        if self.upstream.raises and self.scope["method"] in SAFE and reply.status >= 500:
            raise UpstreamUnreachable(reply, why)
        return reply

    def sent_all(self) -> None:
        """Note that the request has been read: the upstream's time begins, and nothing but a
        disconnect can come from the client."""
        if not self.started:
            self.waits.deadline = min(self.ends, anyio.current_time() + self.upstream.timeout)
        self._beside(self._until_gone())

    def answered_early(self, stream: Stream) -> None:
        """Go on sending while the answer is read; see `asgi_stream`."""
        self._beside(self._send_rest(stream))

    def _beside(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.ensure_future(work))

    async def _until_gone(self) -> None:
        while (await self.body.message())["type"] != "http.disconnect":
            pass
        self._leave()

    def _leave(self) -> None:
        self.gone = True
        self.waits.leave()
        self.cancel.cancel()

    async def _send_rest(self, stream: Stream) -> None:
        try:
            await stream.feed(stream.unsent)
            async for chunk in self.body.rest():
                framed = b"%x\r\n%s\r\n" % (len(chunk), chunk) if self.chunked else chunk
                await stream.feed(framed)
            if self.chunked and not stream.sent_last_chunk:
                await stream.feed(LAST_CHUNK)
        except ClientGone:
            self._leave()
        except httpcore.LocalProtocolError:
            stream.abort()
        except httpcore.WriteError:
            if not self.body.done:  # the upstream wants no more of it, but its answer counts
                await self._until_gone()
