"""Gunicorn's ASGI protocol with deadlines for heads, and an orderly end."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from gunicorn.asgi.protocol import ASGIProtocol

from ...core.exchange import Reply
from ...signals.tcp import tcp_age
from ...signals.waited import ARRIVED
from .base import FRESH_GRACE, HEAD_GRACE, LINGER
from .raw import BUSY, TIMEOUT, rendered

if TYPE_CHECKING:
    from .worker_asgi import LoopMixin

SERVICE_RESTART = 1012
"""The code with which websockets are closed (the registry of RFC 6455)."""


class TimedProtocol(ASGIProtocol):  # type: ignore[misc]
    """One connection of the asgi worker.

    HTTP/2 and uWSGI have framings of their own, and are left as they are.
    """

    worker: LoopMixin
    transport: Any
    _callback_parser: Any
    _current_request: Any
    _websocket: Any
    _closed: bool

    def __init__(self, worker: LoopMixin) -> None:
        super().__init__(worker)
        self._arrived = 0.0
        self._head_begun = False
        self._head_timer: asyncio.TimerHandle | None = None
        self._answered = False
        self._close_websocket: asyncio.Task[None] | None = None
        worker.protocols.add(self)

    def connection_made(self, transport: Any) -> None:
        """Wait for the first request."""
        super().connection_made(transport)
        if self._callback_parser is not None:
            self._wait_for_head(self.worker.first_timeout)

    def _feed_callback_parser(self, data: bytes) -> Any:
        # Not when data is received: what has come with the request before is fed later.
        if self._current_request is None and not self._head_begun:
            self._begin_head()
        return super()._feed_callback_parser(data)

    def _begin_head(self) -> None:
        self._head_begun = True
        age = tcp_age(self.transport.get_extra_info("socket"))
        self._arrived = time.monotonic() - (age or 0.0)
        if self._callback_parser is not None and self._websocket is None:
            self._cancel_keepalive_timer()
            # The arrival may lie back: a loop that turned late must not grant that time again.
            self._wait_for_head(max(0.0, self.worker.force.head - (age or 0.0)))

    def _on_headers_complete(self) -> Any:
        self._head_begun = False
        self._cancel_head_timer()
        return super()._on_headers_complete()

    def _arm_keepalive_timer(self) -> None:
        if not self._head_begun:
            super()._arm_keepalive_timer()

    def _wait_for_head(self, seconds: float) -> None:
        self._cancel_head_timer()
        self._head_timer = self.worker.loop.call_later(seconds, self._head_is_late)

    def _cancel_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_is_late(self) -> None:
        self._head_timer = None
        # A new connection in a drain is closed in silence: nobody has asked for anything.
        self._end_with(TIMEOUT if self.worker.alive or self._head_begun else None)

    def _end_with(self, reply: Reply | None) -> None:
        """Close the connection, after an answer if there is one to give."""
        if reply is not None:
            self._safe_write(rendered(reply))
        self._close_transport()
        if self._request_ready is not None:
            self._request_ready.set()  # so that Gunicorn's task sees the end, and ends

    def _build_http_scope(self, request: Any, sockname: Any, peername: Any) -> Any:
        self._answered = False
        scope = super()._build_http_scope(request, sockname, peername)
        scope[ARRIVED] = self._arrived
        return scope

    def _send_response_start(self, *args: Any, **kwargs: Any) -> None:
        self._answered = True
        super()._send_response_start(*args, **kwargs)

    async def _handle_http_request(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        with self.worker.handling(self, request.method, request.path):
            return await super()._handle_http_request(request, *args, **kwargs)

    def _will_close(self, request: Any, response_requires_close: Any) -> bool:
        closing = self.worker.closing or super()._will_close(request, response_requires_close)
        return bool(closing)

    def drain(self, idle: bool) -> None:
        """Bring the connection to its end, as far as nothing is in flight on it.

        Called again and again until it is gone.

        Args:
            idle: close it even though a request may be on its way.
        """
        if self._closed or (self._callback_parser is None and self._websocket is None):
            return
        if self._websocket is not None:
            self._drain_websocket(self._websocket)
        elif self._head_timer is not None:
            grace = HEAD_GRACE if self._head_begun else FRESH_GRACE
            if self._head_timer.when() > self.worker.loop.time() + grace:
                self._wait_for_head(grace)
        elif self._current_request is None and idle and not self._finishing_calls:
            self._end_with(None)

    def _drain_websocket(self, websocket: Any) -> None:
        if websocket.accepted and self._close_websocket is None and not websocket.closed:
            loop = self.worker.loop
            self._close_websocket = loop.create_task(websocket._send_close(SERVICE_RESTART))
            # Whoever does not answer the close frame is not waited for.
            loop.call_later(LINGER, self._close_transport)

    def give_up(self) -> None:
        """Cut off what is still in flight, after an answer if none has begun."""
        unanswered = self._current_request is not None and not self._answered
        self._end_with(BUSY if unanswered and self._websocket is None else None)
        if self._task is not None:
            self._task.cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._cancel_head_timer()
        self.worker.protocols.discard(self)
        super().connection_lost(exc)
