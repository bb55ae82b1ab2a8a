"""The connections of a WSGI proxy: a pool for each process.

httpcore's own pool is not for threads: one that looks for connections to close may take one that
another thread has been given, and has not begun to use, for idle.
"""

from __future__ import annotations

import os
import threading
from collections import deque

import httpcore

from .upstream import Upstream
from .wsgi_stream import Network


class Pool:
    """The connections of one process, of which each is in the hands of one thread at a time."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._origin = httpcore.Origin(upstream.scheme, upstream.host, upstream.port)
        self._network = Network()
        self._slots = threading.BoundedSemaphore(upstream.max_connections)
        self._idle: deque[httpcore.HTTPConnection] = deque()
        """The last used at the right: those at the left expire."""

    def take(self, seconds: float) -> httpcore.HTTPConnection:
        """Return a connection, which may not be open yet.

        Args:
            seconds: how long to wait if all are taken.

        Raises:
            PoolTimeout: they still are.
        """
        if not self._slots.acquire(timeout=seconds):
            raise httpcore.PoolTimeout("all connections are taken")
        while (connection := self._pop()) is not None:
            if not connection.has_expired():
                return connection
            connection.close()
        return httpcore.HTTPConnection(
            self._origin,
            ssl_context=self._upstream.verify,
            keepalive_expiry=self._upstream.keep_alive,
            network_backend=self._network,
        )

    def give(self, connection: httpcore.HTTPConnection) -> None:
        """Take a connection back; it is closed unless another request may use it."""
        try:
            if connection.is_idle() and not connection.has_expired():
                self._idle.append(connection)
            else:
                connection.close()
        finally:
            self._slots.release()

    def close(self) -> None:
        """Close the connections that nobody uses."""
        while (connection := self._pop()) is not None:
            connection.close()

    def _pop(self) -> httpcore.HTTPConnection | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None


class Pools:
    """The pool of this process; made anew after a fork."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._owned = (os.getpid(), Pool(upstream))

    def current(self) -> Pool:
        """Return the pool of this process."""
        owner, pool = self._owned
        if owner != os.getpid():
            # Its connections are the parent's, who would miss what we read from them. Should two
            # threads come here at once, one of the pools is used for one request, and forgotten.
            pool = Pool(self._upstream)
            self._owned = (os.getpid(), pool)
        return pool
