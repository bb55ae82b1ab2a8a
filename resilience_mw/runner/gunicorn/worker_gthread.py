"""The layer in front of Gunicorn's gthread worker.

Its threads are for requests: a connection that sends nothing, or half a head, is watched by the
event loop and holds none of them, and neither does one that will not close.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import selectors
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from .base import FRESH_GRACE, HEAD_GRACE, LINGER
from .connection import Connection
from .raw import TIMEOUT, answer
from .wsgi_base import WSGIAdapted

ACCEPTS = 16
"""Connections accepted a turn, so that new clients are reached while turns are long."""

NOBODY = (errno.EAGAIN, errno.EWOULDBLOCK, errno.ECONNABORTED)


class ThreadMixin(WSGIAdapted):
    """Reads heads in the event loop, and lets connections linger there."""

    if TYPE_CHECKING:
        poller: Any
        keepalived_conns: Any
        nr_conns: int
        max_keepalived: int
        worker_connections: int

        def enqueue_req(self, conn: Connection) -> None: ...

    def init_process(self) -> None:
        """Start as usual."""
        # By order of their deadlines, as each kind of wait has one length.
        self._silent: dict[Connection, None] = {}
        self._reading: dict[Connection, None] = {}
        self._lingering: dict[Connection, None] = {}
        self._plain = not self.cfg.is_ssl and self.cfg.protocol == "http"
        self._plain = self._plain and "h2" not in self.cfg.http_protocols
        super().init_process()

    def before_serving(self) -> None:
        """Let the event loop watch for the stop."""
        self.poller.register(self.shared.fileno(), selectors.EVENT_READ, self._stop_begins)

    def _stop_begins(self, fileno: int) -> None:
        self.poller.unregister(fileno)
        self.max_keepalived = -1  # what makes Gunicorn close after each response
        self.begin_stop()

    def accept(self, listener: Any) -> None:
        """Accept some connections, and read them as far as they have sent something."""
        for _ in range(ACCEPTS):
            if self.nr_conns >= self.worker_connections or not self._accept_one(listener):
                return

    def _accept_one(self, listener: Any) -> bool:
        try:
            sock, address = listener.accept()
        except OSError as error:
            if error.errno in NOBODY:
                return False
            raise
        self.nr_conns += 1
        self._await_head(Connection(self, sock, address, listener.getsockname()))
        return True

    def on_client_socket_readable(self, conn: Connection, client: Any) -> None:
        """Read the next request of a connection that was idle."""
        if not self._plain:
            super().on_client_socket_readable(conn, client)  # type: ignore[misc]
            return
        self.keepalived_conns.remove(conn)
        self.poller.unregister(client)
        self._await_head(conn)

    def _await_head(self, conn: Connection) -> None:
        conn.timeout = time.monotonic() + self.limits.first
        self._silent[conn] = None
        conn.sock.setblocking(False)
        # Most have sent their request by now, and are never watched.
        if not self._plain or self._read(conn):
            self.poller.register(conn.sock, selectors.EVENT_READ, partial(self._readable, conn))

    def _readable(self, conn: Connection, client: Any) -> None:
        if not self._plain:
            self._hand_over(conn)
        else:
            self._read(conn)

    def _read(self, conn: Connection) -> bool:
        """Read on; returns whether there is still something to wait for."""
        complete = conn.read()
        if complete is None:
            self._drop(conn)
            return False
        if complete:
            conn.hand_over()
            self._hand_over(conn)
            return False
        if conn.head and conn in self._silent:
            del self._silent[conn]
            conn.timeout = conn.arrived + self.limits.head
            self._reading[conn] = None
        return True

    def _hand_over(self, conn: Connection) -> None:
        self._unwatch(conn)
        conn.data_ready = True
        self.enqueue_req(conn)

    def linger(self, conn: Connection) -> None:
        """Let the client read the response to its end: close once it has closed, or soon."""
        if not conn.end_sending():
            conn.close()
            return
        self.nr_conns += 1  # Gunicorn has just taken it for gone
        conn.timeout = time.monotonic() + LINGER
        self._lingering[conn] = None
        self.poller.register(conn.sock, selectors.EVENT_READ, partial(self._lingers, conn))

    def _lingers(self, conn: Connection, client: Any) -> None:
        if not conn.discard():
            self._drop(conn)

    def murder_pending(self) -> None:
        """Give up whoever took too long; 408 for those who have begun a request."""
        now = time.monotonic()
        for conn in _overdue(self._lingering, now):
            self._drop(conn)
        for waiting in (self._silent, self._reading):
            for conn in _overdue(waiting, now):
                self._unwatch(conn)
                # A new connection in a drain is closed in silence, and so is one that would not
                # understand us: its handshake has not begun.
                if (self.alive or conn.head) and not self.cfg.is_ssl:
                    answer(conn.sock, TIMEOUT)
                self.nr_conns -= 1
                self.linger(conn)

    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        """Wait for events, and no longer than until somebody is overdue."""
        firsts = [next(iter(conns), None) for conns in (self._silent, self._reading)]
        firsts += [next(iter(self._lingering), None), next(iter(self.keepalived_conns), None)]
        now = time.monotonic()
        dues = [conn.timeout - now for conn in firsts if conn is not None]
        super().wait_for_and_dispatch_events(  # type: ignore[misc]
            max(0.0, min([timeout, *dues]))
        )

    def set_accept_enabled(self, enabled: bool) -> None:
        """Start or stop accepting; for good, close the listeners: refused rather than hanging."""
        super().set_accept_enabled(enabled)  # type: ignore[misc]
        if enabled or self.alive:
            return
        for listener in self.sockets:
            if self.closing:  # nobody else will accept those who are in the queue
                with contextlib.suppress(OSError):
                    while self._accept_one(listener):
                        pass
            listener.close()

    def _cap_keepalive(self, deadline: float) -> None:
        """Begin to drain: close who is idle, give half-received heads a moment."""
        now = time.monotonic()
        super()._cap_keepalive(now if self.closing else deadline)  # type: ignore[misc]
        for conn in self._silent:
            conn.timeout = min(conn.timeout, now + FRESH_GRACE)
        for conn in self._reading:
            conn.timeout = min(conn.timeout, now + HEAD_GRACE)

    def handle_request(self, req: Any, conn: Connection) -> Any:
        """Handle a request in a thread."""
        handle: Callable[[], Any] = partial(
            super().handle_request,  # type: ignore[misc]
            req,
            conn,
        )
        return self.while_handling(req, handle)

    def run(self) -> None:
        """Serve, and at the end answer for what is still running."""
        super().run()
        self.give_up()

    def end_process(self) -> None:
        """End it although threads are running, for which the interpreter would wait."""
        if self.serving:
            logging.shutdown()
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError):
                    stream.flush()
            os._exit(0)

    def _unwatch(self, conn: Connection) -> None:
        with contextlib.suppress(OSError, KeyError, ValueError):
            self.poller.unregister(conn.sock)
        for conns in (self._silent, self._reading, self._lingering):
            conns.pop(conn, None)

    def _drop(self, conn: Connection) -> None:
        self._unwatch(conn)
        self.nr_conns -= 1
        conn.close()


def _overdue(conns: dict[Connection, None], now: float) -> list[Connection]:
    """Return those whose time is over, of connections in the order of their deadlines."""
    found = []
    for conn in conns:
        if conn.timeout > now:
            break
        found.append(conn)
    return found
