"""Uvicorn's two HTTP protocols, with a time for the head, a stamp, and answers without a task.

| a connection | until | then |
|---|---|---|
| has sent nothing yet | `headers_timeout` after it was accepted | 408 |
| has begun a request head | `head` after its first byte | 408 |
| is being served | for ever: deadlines are the middleware's | |
| is kept, with no new request | `keep_alive_timeout` after the last response | closed |

They need nothing of our server but use it where it is there (`State`): any Uvicorn takes them as
``Config(http=protocol(runner))``.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import time
from array import array
from asyncio.trsock import TransportSocket
from typing import Any, Literal

from uvicorn.protocols.http.flow_control import FlowControl

from ...config import Runner
from ...core.deadline import UNRECEIVED
from ...signals.tcp import has_tcp_info, tcp_age
from ...signals.waited import ARRIVED
from ...wire import CLOSE, written
from .answering import Answering
from .state import NEVER, sweep_of

HEAD_GRACE = 5.0
"""Seconds, once nothing is accepted any more, for what has been received in part."""

FAREWELL = 1.0
"""Seconds, then, for the client's part of the end of TLS."""

FRESH_GRACE = 1.0
"""Seconds, then, for a connection that has sent nothing yet: its request may be on the way."""


class Timed(Answering):
    """What both protocols add; to be put before one of Uvicorn's.

    Attributes:
        head: seconds from the first byte of a request until its head must be complete.
    """

    head: float
    flow: FlowControl
    scope: Any
    _between: bool
    """Whether the next byte begins a request."""

    _in_head = False
    _clocked = False
    """Whether the time for a head is running; a line that is empty starts it only once."""
    _fresh = True
    _closed_at = NEVER
    _arrived = 0.0
    _socket: Any = None
    _sweep: Any = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        sock = transport.get_extra_info("socket")
        if has_tcp_info(sock):
            # uvloop makes a real socket for every question; a descriptor is asked at half the cost.
            self._socket = sock if isinstance(sock, TransportSocket) else sock.fileno()
        self.due = time.monotonic() + self.runner.headers_timeout
        shortest = min(self.head, self.runner.keep_alive_timeout)
        self._sweep = sweep_of(self.server_state, asyncio.get_running_loop(), shortest)
        self._sweep.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._ignore()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        now = time.monotonic()
        # The kernel had it for as long as the loop was busy.
        self._read_at = now - (tcp_age(self._socket) or 0.0)
        self._fresh = False
        hot = now < self._hot_until() and self._between and not self.busy
        if hot and self._refused(data, now):
            return
        if not self._clocked and not self.busy:
            self._clocked = True
            self.due = self._read_at + self.head
        super().data_received(data)

    def handle_websocket_upgrade(self, *request: Any) -> None:
        self._ignore()  # from here on the connection belongs to another protocol
        super().handle_websocket_upgrade(*request)  # type: ignore[misc]

    @property
    def busy(self) -> bool:
        """Whether a request is being served."""
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def in_progress(self) -> tuple[str, str, float] | None:
        """Method, path and age (seconds) of the request whose response is not out yet."""
        if not self.busy and (self.cycle is None or not self._unsent):
            return None
        scope = self.cycle.scope
        return scope["method"], scope["path"], time.monotonic() - scope[ARRIVED]

    @property
    def _unsent(self) -> int:
        # asyncio's transport of TLS knows nothing any more once it has been closed twice.
        with contextlib.suppress(AttributeError):
            return self.transport.get_write_buffer_size()
        return 0

    def farewell(self, now: float) -> None:
        """Drop a connection that is closed, if its client does not say goodbye, which TLS awaits.

        Args:
            now: monotonic seconds; to be called again and again while stopping.
        """
        if self.transport.is_closing() and not self._unsent:
            self._closed_at = min(self._closed_at, now)
            if now > self._closed_at + FAREWELL:
                self.transport.abort()

    def expire(self) -> None:
        """Close: with a 408 if a request was due, in silence if it was an idle connection."""
        self.due = NEVER
        if self.transport.is_closing():
            return
        if self._in_head or (self._fresh and not self._draining):
            headers = [*self.server_state.default_headers, *UNRECEIVED.raw_headers]
            if CLOSE not in headers:
                headers.append(CLOSE)
            self.transport.write(written(UNRECEIVED, headers))
        self.transport.close()

    def drain(self) -> None:
        """Let the response in progress be the last one on this connection."""
        if self.busy:
            self.cycle.keep_alive = False
            if not self.cycle.response_started:
                self.cycle.default_headers = self.server_state.default_headers

    def shutdown(self) -> None:
        """Close an idle connection; whoever is served, or has begun to ask, may finish."""
        self.drain()
        if self.busy or self.transport.is_closing():
            return
        now = time.monotonic()
        if self._in_head or self._unread():
            self.due = min(self.due, now + HEAD_GRACE)
        elif self._fresh:
            self.due = min(self.due, now + FRESH_GRACE)
        else:
            self.transport.close()

    @property
    def _draining(self) -> bool:
        return bool(getattr(self.server_state, "draining", False))

    def _unread(self) -> bool:
        """Whether the kernel holds data that the loop has not come to read yet."""
        sock = self.transport.get_extra_info("socket")
        if sock is None or sock.fileno() < 0:
            return False
        try:
            import fcntl
            import termios
        except ImportError:  # pragma: no cover - Windows
            return False
        size = array("i", [0])
        fcntl.ioctl(sock.fileno(), termios.FIONREAD, size)
        return size[0] > 0

    def _ignore(self) -> None:
        self.due = NEVER
        if self._sweep is not None:
            self._sweep.discard(self)

    # -- requests -----------------------------------------------------------------------------

    def _head_began(self) -> None:
        self._in_head = True
        self._arrived = self._read_at

    def _head_complete(self) -> None:
        # The scope is new, and the only thing that goes with the request.
        self.scope[ARRIVED] = self._arrived if self._in_head else self._read_at
        self._in_head = self._clocked = False
        self.due = NEVER

    def _response_complete(self) -> None:
        """Start the clock of a head that has begun to arrive during the response before it."""
        if self._in_head and not self.busy and not self.transport.is_closing():
            self._unset_keepalive_if_required()
            self._clocked = True
            self.due = time.monotonic() + self.head


def protocol(
    runner: Runner,
    http: Literal["auto", "httptools", "h11"] = "auto",
    *,
    head: float | None = None,
) -> type[asyncio.Protocol]:
    """Return the protocol class for Uvicorn's ``Config(http=...)``.

    Args:
        runner: the times.
        head: seconds for a head, from its first byte; ``None`` = `headers_timeout`.
        http: the parser; ``auto`` is httptools if it is installed.

    Raises:
        ImportError: the parser is not installed.
    """
    if http == "auto":
        http = "httptools" if importlib.util.find_spec("httptools") else "h11"
    base: type[asyncio.Protocol]
    if http == "httptools":
        from .httptools_protocol import HttpTools as base
    else:
        from .h11_protocol import H11 as base
    return type(
        base.__name__,
        (base,),
        {"runner": runner, "head": runner.headers_timeout if head is None else head},
    )
