"""Read requests of WSGI workers under absolute deadlines.

A read that is only given a timeout starts anew with every byte that a client drips. Here the head
must be complete so many seconds after its first byte, and the body so many, however it arrives.
"""

from __future__ import annotations

import errno
import time
import weakref
from typing import Any

import gunicorn.http
from gunicorn.http.errors import NoMoreData
from gunicorn.http.parser import RequestParser
from gunicorn.http.unreader import SocketUnreader

from ...signals.tcp import tcp_age
from ...signals.waited import ARRIVED
from ...types import Environ, StartResponse, WSGIApp
from .raw import TIMEOUT, answer

IDLE, HEAD, BODY = range(3)


class Limits:
    """What a worker grants its clients, in seconds, and who is reading just now.

    Args:
        first: until the first byte on a new connection.
        keep_alive: until the first byte of a further request.
        head: from the first byte until the head is complete.
        receive: from the first byte until the request is complete; 0 = no limit.
    """

    def __init__(self, first: float, keep_alive: float, head: float, receive: float) -> None:
        self.first = first
        self.keep_alive = keep_alive
        self.head = head
        self.receive = receive
        self.readers: weakref.WeakSet[TimedUnreader] = weakref.WeakSet()


class TimedUnreader(SocketUnreader):  # type: ignore[misc]
    """Gunicorn's reader of a connection, with deadlines.

    Attributes:
        phase: what it is waiting for.
        fresh: whether it waits for the first request of its connection.
        arrived: when the request's first byte arrived (monotonic seconds); 0 = it has not.
        response: Gunicorn's response to the request, once the app has begun to answer.
    """

    def __init__(self, sock: Any, limits: Limits) -> None:
        super().__init__(sock)
        self.limits = limits
        self.phase = IDLE
        self.fresh = True
        self.arrived = 0.0
        self.response: Any = None
        self._deadline: float | None = None
        limits.readers.add(self)

    def begin(self, first: bool, now: float) -> None:
        """Expect a request."""
        self.response, self.fresh = None, first
        if self.buf.getvalue():
            self._arrive(now)  # it has been read together with the one before, or for us
            return
        self.phase, self.arrived = IDLE, 0.0
        self._deadline = now + (self.limits.first if first else self.limits.keep_alive)

    def feed(self, head: bytes, arrived: float) -> None:
        """Take what somebody else has read of a request."""
        self.unread(head)
        self.phase, self.arrived = IDLE, arrived

    def head_complete(self) -> None:
        """Expect the body, as far as there is one."""
        self.phase = BODY
        receive = self.limits.receive
        self._deadline = self.arrived + receive if receive else None

    def chunk(self, *hints: Any) -> bytes:
        """Read what has arrived, waiting for it until the deadline at most.

        Raises:
            NoMoreData: it was not complete in time. Where that was a request, 408 was answered.
            ConnectionResetError: the same for a body, which the app is reading.
        """
        before = self.sock.gettimeout()
        left = self._left(before)
        try:
            if left is not None:
                self.sock.settimeout(left)
            data: bytes = super().chunk(*hints)
        except TimeoutError:
            if self._deadline is None or time.monotonic() < self._deadline:
                raise  # Gunicorn's own, which has a use for it
            raise self.expire() from None
        finally:
            self.sock.settimeout(before)
        if self.phase == IDLE and data:
            self._arrive(time.monotonic())
        return data

    def expire(self) -> Exception:
        """Answer 408, except on a connection that was only kept; returns what ends the handling."""
        idle = self.phase == IDLE and not self.fresh
        if not idle and not getattr(self.response, "headers_sent", False):
            answer(self.sock, TIMEOUT)
        if self.phase == BODY:
            return ConnectionResetError(errno.ECONNRESET, "request not received in time")
        return NoMoreData()  # type: ignore[no-any-return]

    def _arrive(self, now: float) -> None:
        if not self.arrived or self.phase != IDLE:
            # The kernel knows better: the byte may have waited for somebody to read it.
            self.arrived = now - (tcp_age(self.sock) or 0.0)
        self.phase = HEAD
        self._deadline = self.arrived + self.limits.head

    def _left(self, before: float | None) -> float | None:
        if self._deadline is None:
            return before
        left = self._deadline - time.monotonic()
        if left <= 0.0:
            raise self.expire()
        return left if before is None else min(before, left)


class TimedParser(RequestParser):  # type: ignore[misc]
    """Gunicorn's parser of HTTP/1 requests on a `TimedUnreader`."""

    def __init__(self, cfg: Any, sock: Any, address: Any, limits: Limits) -> None:
        super().__init__(cfg, sock, address)
        self.unreader = TimedUnreader(sock, limits)

    def __next__(self) -> Any:
        """Read the next request's head."""
        if self.mesg and not self.mesg.should_close() and not self.finish_body():
            raise StopIteration
        self.unreader.begin(self.req_count == 0, time.monotonic())
        message = super().__next__()
        self.unreader.head_complete()
        return message

    next = __next__


def read_with(limits: Limits) -> None:
    """Let the parsers of this process, a worker, keep to the limits."""
    plain = gunicorn.http.get_parser

    def get_parser(cfg: Any, source: Any, source_addr: Any, http2_connection: bool = False) -> Any:
        other = http2_connection or getattr(cfg, "protocol", "http") != "http"
        if other or not hasattr(source, "settimeout"):
            return plain(cfg, source, source_addr, http2_connection=http2_connection)
        return TimedParser(cfg, source, source_addr, limits)

    gunicorn.http.get_parser = get_parser


class Stamped:
    """Tells the guards when a request arrived, and its reader whether it is being answered.

    Args:
        app: the app, protected or not.
    """

    def __init__(self, app: WSGIApp) -> None:
        self.app = app

    def __call__(self, environ: Environ, start_response: StartResponse) -> Any:
        """Serve one WSGI request."""
        unreader = _unreader(environ)
        if unreader is not None:
            unreader.response = getattr(start_response, "__self__", None)
            environ[ARRIVED] = unreader.arrived
        return self.app(environ, start_response)


def _unreader(environ: Environ) -> TimedUnreader | None:
    reader = getattr(environ.get("wsgi.input"), "reader", None)
    for owner in (reader, getattr(reader, "req", None)):
        unreader = getattr(owner, "unreader", None)
        if isinstance(unreader, TimedUnreader):
            return unreader
    return None
