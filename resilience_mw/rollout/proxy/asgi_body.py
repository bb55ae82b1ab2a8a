"""The request's body on its way from the client to the upstream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import httpcore

from ...types import Message, Receive
from .asgi_stream import Stream
from .asgi_waits import Waits
from .errors import ClientGone


class RequestBody:
    """The body as httpcore reads it: chunk by chunk, as the client sends them.

    When the upstream begins to answer before the end, httpcore is told that writing has failed, and
    `rest` has what follows.

    Args:
        receive: the server's.
        waits: what the request waits for.
        sent_all: called once, when the last byte has been read.
        early: called with the connection on which an answer came before the end.
    """

    def __init__(
        self,
        receive: Receive,
        waits: Waits,
        sent_all: Callable[[], None],
        early: Callable[[Stream], None],
    ) -> None:
        self._receive = receive
        self._waits = waits
        self._sent_all = sent_all
        self._early = early
        self._read: Message | None = None
        """The first message, until it is used."""
        self._pending: asyncio.Future[Message] | None = None
        """The next one, while we wait for it."""
        self.left: int | None = None
        """Bytes to come, where the request's header says how many."""
        self.done = False

    async def peek(self) -> bool:
        """Return whether there is no body.

        Raises:
            ClientGone: the client has left already.
        """
        message = await self._receive()
        if not message.get("body") and not message.get("more_body"):
            self._take(message)
            return True
        self._read = message
        return False

    async def message(self) -> Message:
        """Return the next message."""
        message, self._read = self._read, None
        if message is not None:
            return message
        pending, self._pending = self._pending, None
        return await (self._receive() if pending is None else pending)

    def close(self) -> None:
        """Wait no longer for the client."""
        if self._pending is not None:
            self._pending.cancel()

    def __aiter__(self) -> RequestBody:
        return self

    async def __anext__(self) -> bytes:
        stream = self._waits.stream
        if stream is None:  # pragma: no cover - httpcore writes the head before it asks for more
            raise StopAsyncIteration
        stream.early = self._early
        while not self.done:
            if self._read is None:
                work = self._message_or_answer(stream)
                await self._waits.wait(work, None, httpcore.WriteTimeout)
            chunk = self._take(await self.message())
            if chunk:
                return chunk
        raise StopAsyncIteration

    async def rest(self) -> AsyncIterator[bytes]:
        """Go on after `early` was called, whatever is answered."""
        while not self.done:
            chunk = self._take(await self.message())
            if chunk:
                yield chunk

    async def _message_or_answer(self, stream: Stream) -> None:
        pending = self._pending = asyncio.ensure_future(self._receive())
        pending.add_done_callback(stream.wake)
        while not pending.done():
            if stream.answers:
                stream.interrupt()
            await stream.changed()

    def _take(self, message: Message) -> bytes:
        if message["type"] != "http.request":
            raise ClientGone
        chunk: bytes = message.get("body", b"")
        last = not message.get("more_body")
        if self.left is not None:
            self.left -= len(chunk)
            if self.left < 0 or (last and self.left):
                raise httpcore.LocalProtocolError("its body is not as long as it says")
        if last:
            self.done = True
            self._sent_all()
        return chunk
