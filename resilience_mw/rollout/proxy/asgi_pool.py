"""The connections of an ASGI proxy: a pool for each event loop.

httpcore's own pool is not used: a request that is cancelled in the moment in which it is given a
new connection leaves that connection in the pool, never used and never removed.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections import deque

import anyio
import httpcore

from .asgi_stream import Network, Stream
from .upstream import Upstream


class Pool:
    """The connections of one event loop, of which each is used by one request at a time."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._origin = httpcore.Origin(upstream.scheme, upstream.host, upstream.port)
        self._network = Network()
        self.slots = anyio.Semaphore(upstream.max_connections)
        """Taken before a connection, and released after it."""
        self.idle: deque[httpcore.AsyncHTTPConnection] = deque()
        """The last used at the right: those at the left expire."""

    async def take(self) -> httpcore.AsyncHTTPConnection:
        """Return a connection, which may not be open yet."""
        while self.idle:
            connection = self.idle.pop()
            if not connection.has_expired():
                return connection
            await connection.aclose()
        return httpcore.AsyncHTTPConnection(
            self._origin,
            ssl_context=self._upstream.verify,
            keepalive_expiry=self._upstream.keep_alive,
            network_backend=self._network,
        )

    def give(self, connection: httpcore.AsyncHTTPConnection, stream: Stream | None) -> None:
        """Take a connection back; it is closed unless another request may use it.

        Args:
            connection: what `take` has returned.
            stream: its network stream, if it has come so far.
        """
        if connection.is_idle() and not connection.has_expired():
            self.idle.append(connection)
        elif stream is not None:
            stream.abort()

    async def aclose(self) -> None:
        """Close the connections that nobody uses."""
        while self.idle:
            await self.idle.pop().aclose()


class Pools:
    """The pool of whichever loop runs; made when first asked for, and anew after a fork."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._pid = os.getpid()
        self._pools: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Pool]
        self._pools = weakref.WeakKeyDictionary()

    def current(self) -> Pool:
        """Return the running loop's pool."""
        if self._pid != os.getpid():
            # Its connections are the parent's, who would miss what we read from them.
            self._pid = os.getpid()
            self._pools = weakref.WeakKeyDictionary()
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is None:
            pool = self._pools[loop] = Pool(self._upstream)
        return pool

    async def aclose(self) -> None:
        """Close the unused connections of the running loop."""
        await self.current().aclose()
