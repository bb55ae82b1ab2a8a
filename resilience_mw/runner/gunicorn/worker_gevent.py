"""The layer in front of Gunicorn's gevent worker."""

from __future__ import annotations

import contextlib
import socket
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import gevent
import gevent.event
import gevent.pool
import gevent.server
import gevent.socket
from gunicorn.sock import ssl_context

from .base import FRESH_GRACE, HEAD_GRACE, LINGER
from .raw import TIMEOUT, answer, shut_down
from .reading import HEAD, IDLE, TimedUnreader
from .wsgi_base import WSGIAdapted

PERIOD = 0.05
"""Seconds between two looks at what is still open while draining."""


class Listening:
    """What a connection's greenlet asks of the listener, which may be closed by then.

    Args:
        address: where it listens.
    """

    def __init__(self, address: Any) -> None:
        self.address = address

    def getsockname(self) -> Any:
        """Return the address."""
        return self.address


class GeventMixin(WSGIAdapted):
    """Ends its connections one by one instead of waiting for all of them."""

    if TYPE_CHECKING:
        server_class: Any
        worker_connections: int

        def handle(self, listener: Any, client: Any, addr: Any) -> None: ...

    def timeout_ctx(self) -> contextlib.AbstractContextManager[None]:
        """Leave deadlines to what reads, which knows an idle connection from a slow one."""
        return contextlib.nullcontext()

    def before_serving(self) -> None:
        """Let a greenlet watch for the stop."""
        self._told = gevent.event.Event()
        gevent.spawn(self._await_stop)

    def _await_stop(self) -> None:
        gevent.socket.wait_read(self.shared.fileno())
        self.cfg.settings["keepalive"].value = 0  # what makes Gunicorn close after each response
        self.begin_stop()

    def handle_exit(self, sig: int, frame: Any) -> None:
        """End after what is in flight, beginning now."""
        super().handle_exit(sig, frame)
        self._told.set()

    def handle_request(self, listener_name: Any, req: Any, sock: Any, addr: Any) -> Any:
        """Handle a request in its greenlet."""
        handle = partial(
            super().handle_request,  # type: ignore[misc]
            listener_name,
            req,
            sock,
            addr,
        )
        return self.while_handling(req, handle)

    def run(self) -> None:
        """Serve with an accept loop of our own, whose listeners can be closed in time."""
        if self.server_class is not None:
            super().run()
            return
        with self.in_service() as begun:
            if begun:
                self._serve()

    def _serve(self) -> None:
        servers = [self._start(sock) for sock in self.sockets]
        while self.alive:
            self.notify()
            self._told.wait(1.0)
        for server in servers:
            server.close()
        self._drain([server.pool for server in servers])

    def _start(self, sock: Any) -> Any:
        sock.setblocking(1)
        tls = {"ssl_context": ssl_context(self.cfg)} if self.cfg.is_ssl else {}
        pool = gevent.pool.Pool(self.worker_connections)
        handle = partial(self.handle, Listening(sock.getsockname()))
        server = gevent.server.StreamServer(sock, handle, spawn=pool, **tls)
        if self.cfg.workers > 1:
            server.max_accept = 1  # so that one worker does not take what others have time for
        server.start()
        return server

    def _drain(self, pools: list[Any]) -> None:
        begun = time.monotonic()
        until = begun + self.force.drain
        idle_from = begun if self.closing else min(begun + LINGER, until)
        while any(pools) and (now := time.monotonic()) < until:
            self.notify()
            for unreader in list(self.limits.readers):
                self._end_reading(unreader, now - begun, idle=now >= idle_from)
            gevent.sleep(PERIOD)
        if any(pools):
            self.give_up()
            for pool in pools:
                pool.kill(timeout=1)

    @staticmethod
    def _end_reading(unreader: TimedUnreader, since: float, *, idle: bool) -> None:
        """Let a greenlet that waits for a client wake up and see the end, once it is time."""
        if unreader.phase == HEAD and since >= HEAD_GRACE:
            answer(unreader.sock, TIMEOUT)
        elif unreader.phase != IDLE or not (since >= FRESH_GRACE if unreader.fresh else idle):
            return
        shut_down(unreader.sock, socket.SHUT_RD)
