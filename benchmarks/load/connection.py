"""Connections to the server, and the pool that hands them out."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections import deque
from collections.abc import Callable
from time import monotonic

from benchmarks.load.record import Failure, Record
from benchmarks.load.response import MalformedResponse, Response, ResponseReader
from benchmarks.load.target import Target

# Linux: choose the source port at connect(), where only the whole address pair must be unique.
IP_BIND_ADDRESS_NO_PORT = 24

# Errors that say the generator, not the server, has run out of something.
OURS = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL}


class Connection(asyncio.Protocol):
    """One TCP connection that carries one request at a time."""

    __slots__ = ("_pool", "_reader", "idle_since", "opening", "record", "reused", "transport")

    def __init__(self, pool: Pool, record: Record, method: str) -> None:
        self._pool = pool
        self._reader = ResponseReader(method)
        self.record: Record | None = record
        self.opening: asyncio.Task[None] | None = None
        self.transport: asyncio.Transport | None = None
        self.reused = False
        self.idle_since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        if self.record is None:
            transport.close()
        else:
            self.transport.write(self._pool.payload)  # type: ignore[union-attr]

    def data_received(self, data: bytes) -> None:
        if self.record is None:
            self.close()
            return
        try:
            response = self._reader.feed(data)
        except MalformedResponse:
            self._pool.failed(self, "malformed")
            return
        if response is not None:
            self._pool.answered(self, response)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        if self.record is None:
            return
        response = self._reader.close() if exc is None else None
        if response is not None:
            self._pool.answered(self, response)
        elif self.reused and not self._reader.started:
            self._pool.retry(self)
        else:
            self._pool.failed(self, "reset")

    def send(self, record: Record) -> None:
        """Send the next request on a connection that is idle."""
        self.record = record
        self.reused = True
        self.transport.write(self._pool.payload)  # type: ignore[union-attr]

    def close(self) -> None:
        """Close, whatever state it is in; tells the pool nothing."""
        self.record = None
        if self.transport is not None:
            self.transport.abort()
        elif self.opening is not None:
            self.opening.cancel()


class Pool:
    """Send each request on a connection of its own for the time it takes.

    With `reuse` the connection that became idle last is taken first, and a new one is opened
    whenever none is idle, as load balancers do. Connections idle for `idle_timeout` seconds are
    closed by us, before a server's keep-alive timeout can close them under a request; where that
    race is lost all the same, the request is sent once more on a new connection, as every
    proxy does for a GET. Without `reuse` each request opens a connection.
    """

    def __init__(
        self,
        target: Target,
        done: Callable[[Record], None],
        *,
        reuse: bool = True,
        idle_timeout: float = 1.5,
        max_connections: int = 30_000,
    ) -> None:
        self.payload = target.request(keep_alive=reuse)
        self.opened = 0
        self._target = target
        self._done = done
        self._reuse = reuse
        self._idle_timeout = idle_timeout
        self._max_connections = max_connections
        self._sources = target.sources()
        self._idle: deque[Connection] = deque()
        self._busy: dict[Record, Connection] = {}
        self._loop = asyncio.get_running_loop()

    def submit(self, record: Record) -> None:
        """Send one request now; `done` is called with it when it has ended."""
        while self._idle:
            connection = self._idle.pop()
            if connection.transport is not None and not connection.transport.is_closing():
                self._busy[record] = connection
                connection.send(record)
                return
        self._open(record)

    def answered(self, connection: Connection, response: Response) -> None:
        """The response is complete: note it, and keep the connection if it can be used again."""
        record = self._end(connection, response.status)
        record.retry_after = response.retry_after
        if self._reuse and response.reusable and connection.transport is not None:
            connection.idle_since = monotonic()
            self._idle.append(connection)
        elif connection.transport is not None:
            connection.transport.close()
        self._done(record)

    def failed(self, connection: Connection, outcome: Failure) -> None:
        """There will be no response."""
        record = self._end(connection, outcome)
        connection.close()
        self._done(record)

    def give_up(self, record: Record) -> None:
        """Patience has run out: close the connection, as a client does that leaves."""
        self.failed(self._busy[record], "timeout")

    def retry(self, connection: Connection) -> None:
        """The server closed an idle connection while the request was on its way to it."""
        record = connection.record
        assert record is not None
        connection.record = None
        record.retried = True
        self._open(record)

    def close_idle(self) -> None:
        """Close what nobody needed for a while; they stand in order of their last use."""
        oldest = monotonic() - self._idle_timeout
        while self._idle and self._idle[0].idle_since < oldest:
            self._idle.popleft().close()

    def close(self) -> None:
        """Close every connection."""
        for connection in (*self._idle, *self._busy.values()):
            connection.close()
        self._idle.clear()
        self._busy.clear()

    def _open(self, record: Record) -> None:
        connection = Connection(self, record, self._target.method)
        self._busy[record] = connection
        self.opened += 1
        connection.opening = self._loop.create_task(self._connect(connection))

    async def _connect(self, connection: Connection) -> None:
        try:
            client = await self._connected_socket()
        except OSError as error:
            if connection.record is not None:
                self.failed(connection, "unsent" if error.errno in OURS else "refused")
            return
        await self._loop.create_connection(lambda: connection, sock=client)

    async def _connected_socket(self) -> socket.socket:
        if len(self._busy) > self._max_connections:
            raise OSError(errno.EMFILE, "too many connections")
        client = socket.socket(self._target.family, socket.SOCK_STREAM)
        try:
            client.setblocking(False)
            source = next(self._sources)
            if source is not None:
                client.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
                client.bind((source, 0))
            await self._loop.sock_connect(client, (self._target.host, self._target.port))
        except BaseException:
            client.close()
            raise
        return client

    def _end(self, connection: Connection, outcome: int | Failure) -> Record:
        record = connection.record
        assert record is not None
        connection.record = None
        del self._busy[record]
        record.outcome = outcome
        return record
