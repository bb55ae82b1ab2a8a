"""The connections of an ASGI proxy: a pool for each event loop."""

from __future__ import annotations

import asyncio
import os
import weakref

import anyio
import httpcore

from .asgi_stream import Network
from .upstream import Upstream


class Pool:
    """The connections that one event loop has open.

    httpcore's own limit is not used: a request that is cancelled in the moment in which it is given
    a new connection would leave that connection in the pool, never opened and never removed.
    """

    def __init__(self, upstream: Upstream) -> None:
        self.slots = anyio.Semaphore(upstream.max_connections)
        self.http = httpcore.AsyncConnectionPool(
            ssl_context=upstream.verify,
            max_connections=None,
            max_keepalive_connections=None,
            keepalive_expiry=upstream.keep_alive,
            network_backend=Network(),
        )


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
        """Close the running loop's pool."""
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None and self._pid == os.getpid():
            await pool.http.aclose()
