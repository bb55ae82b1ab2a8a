"""Connections of an ASGI proxy that hear while they speak.

httpcore reads no response before it has written the whole request. That does for a client, but not
for a proxy, whose upstream may answer a large upload before its end, with a refusal or bit by bit:
both sides would wait for the other to read, or the refusal would be lost. So when an answer comes
early, writing fails as far as httpcore is concerned: it goes on to read, and whoever has the rest
of the request sends it with `feed`. Such a connection is not used again.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import httpcore

from .asgi_waits import calling

HIGH = 262_144
"""Bytes read ahead of whoever wants them; then the upstream has to wait."""


LAST_CHUNK = b"0\r\n\r\n"


class Stream(asyncio.Protocol, httpcore.AsyncNetworkStream):
    """One connection."""

    def __init__(self) -> None:
        self._transport: Any
        """Of asyncio or uvloop, which have no class in common."""
        self._data = bytearray()
        self._ended = False
        """Whether nothing more will come."""
        self._lost = False
        """Whether nobody will hear us."""
        self._error: Exception | None = None
        self._full = False
        """Whether what we wrote has not been taken yet."""
        self._reads = True
        """Whether we read last: what is written next begins a request."""
        self._changed: list[asyncio.Future[None]] = []
        self._interrupted = False
        self.early: Callable[[Stream], None] | None = None
        """Called when an answer comes before the end of the request, which is then someone else's
        to send."""
        self.unsent = b""
        """What httpcore wanted to write at that moment."""
        self.sent_last_chunk = False

    # What asyncio tells us.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Keep what came, within bounds."""
        self._data += data
        if len(self._data) > HIGH:
            self._transport.pause_reading()
        self.wake()

    def eof_received(self) -> bool:
        """Note the end; what we have to say may still be heard."""
        self._ended = True
        self.wake()
        return self._transport.get_extra_info("sslcontext") is None

    def connection_lost(self, error: Exception | None) -> None:
        """Note the end of both ways."""
        if not self._ended:
            self._error = error  # else we had heard all there was
        self._ended = self._lost = True
        self._full = False
        self.wake()

    def pause_writing(self) -> None:
        """Note that the upstream has to catch up."""
        self._full = True

    def resume_writing(self) -> None:
        """Note that it did."""
        self._full = False
        self.wake()

    async def changed(self) -> None:
        """Wait until something has happened."""
        waiting = asyncio.get_running_loop().create_future()
        self._changed.append(waiting)
        await waiting

    def wake(self, *_: Any) -> None:
        """Say that something has happened."""
        for waiting in self._changed:
            if not waiting.done():
                waiting.set_result(None)
        self._changed.clear()

    # What httpcore asks of us.

    async def read(
        self,
        max_bytes: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's word
    ) -> bytes:
        """Return what is there, or wait for it; nothing = the end."""
        self._reads = True
        if not self._data and not self._ended:
            await calling.get().wait(self._answered(), timeout, httpcore.ReadTimeout)
        if not self._data:
            if self._error is not None:
                raise httpcore.ReadError(str(self._error))
            return b""
        data = bytes(self._data[:max_bytes])
        del self._data[:max_bytes]
        if len(self._data) <= HIGH and not self._ended:
            self._transport.resume_reading()
        return data

    async def write(
        self,
        buffer: bytes,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> None:
        """Write, unless an answer comes before the end of the request."""
        if self._reads:
            self._reads = False
            self.early = None
            calling.get().stream = self
        elif not buffer:
            return  # how h11 ends a request without chunks
        elif self.answers:
            self.unsent = buffer
            self.interrupt()
        self._send(buffer)
        if self._full:
            taken = calling.get().wait(self._taken(), timeout, httpcore.WriteTimeout)
            if not await taken:
                self.interrupt()

    async def _answered(self) -> None:
        while not self.answers:
            await self.changed()

    async def _taken(self) -> bool:
        """Wait until there is room for more; return false if an answer came first."""
        while self._full:
            if self.answers:
                return False
            await self.changed()
        return True

    def interrupt(self) -> None:
        """Have httpcore read the answer, and somebody else send the rest.

        Raises:
            WriteError: always; httpcore looks for an answer then.
        """
        self._interrupted = True
        if self.early is not None:
            self.early(self)
        raise httpcore.WriteError("it answers already")

    async def feed(self, buffer: bytes) -> None:
        """Write, whatever is heard meanwhile."""
        self._send(buffer)
        while self._full:
            await self.changed()

    def _send(self, buffer: bytes) -> None:
        if self._lost:
            raise httpcore.WriteError("connection closed")
        self.sent_last_chunk = buffer == LAST_CHUNK
        self._transport.write(buffer)

    @property
    def answers(self) -> bool:
        """Whether there is something to be read, if only the end."""
        return bool(self._data) or self._ended

    def abort(self) -> None:
        """Close the connection, whoever uses it."""
        self._transport.abort()

    async def aclose(self) -> None:
        """Close the connection at once."""
        if self._transport.get_extra_info("sslcontext") or self._transport.get_write_buffer_size():
            self.abort()  # wait for nobody to take what nobody needs
        else:
            self._transport.close()
        while not self._lost:
            await self.changed()
        await asyncio.sleep(0)  # uvloop frees the socket in its next turn

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore.AsyncNetworkStream:
        """Go on in TLS."""
        loop = asyncio.get_running_loop()
        work = loop.start_tls(self._transport, self, ssl_context, server_hostname=server_hostname)
        try:
            with _failing():
                transport = await calling.get().wait(work, timeout, httpcore.ConnectTimeout)
        except BaseException:
            self.abort()
            raise
        if transport is None:  # pragma: no cover - asyncio says so if it is lost just now
            raise httpcore.ConnectError("connection closed in the handshake")
        self._transport = transport
        return self

    def get_extra_info(self, info: str) -> Any:
        """Return what httpcore wants to know."""
        if info == "is_readable":  # asked of a connection that should have nothing to say
            return self.answers or self._interrupted
        return self._transport.get_extra_info(info)


class Network(httpcore.AsyncNetworkBackend):
    """Makes such connections."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect."""
        loop = asyncio.get_running_loop()
        work = loop.create_connection(Stream, host, port)
        with _failing():
            _, stream = await calling.get().wait(work, timeout, httpcore.ConnectTimeout)
        calling.get().stream = stream
        return stream


@contextlib.contextmanager
def _failing() -> Iterator[None]:
    try:
        yield
    except (OSError, ssl.SSLError) as error:
        raise httpcore.ConnectError(str(error)) from None
