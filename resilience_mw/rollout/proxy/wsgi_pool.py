"""The connections of a WSGI proxy: a pool for each process."""

from __future__ import annotations

import os
import threading

import httpcore

from .upstream import Upstream
from .wsgi_stream import Network


class Pool:
    """The process's connections; made when first asked for, and anew after a fork."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._lock = threading.Lock()
        self._pid = 0
        self._http: httpcore.ConnectionPool | None = None

    def current(self) -> httpcore.ConnectionPool:
        """Return the pool of this process."""
        pid = os.getpid()
        http = self._http
        if http is not None and self._pid == pid:
            return http
        if self._pid not in (0, pid):
            # The parent's connections are not ours to read from, and its lock may be held by a
            # thread that is not here.
            self._lock = threading.Lock()
        with self._lock:
            if self._http is None or self._pid != pid:
                self._http = httpcore.ConnectionPool(
                    ssl_context=self._upstream.verify,
                    max_connections=self._upstream.max_connections,
                    max_keepalive_connections=None,
                    keepalive_expiry=self._upstream.keep_alive,
                    network_backend=Network(),
                )
                self._pid = pid
            return self._http

    def close(self) -> None:
        """Close the connections of this process."""
        http, self._http = self._http, None
        if http is not None and self._pid == os.getpid():
            http.close()
