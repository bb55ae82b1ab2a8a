"""Uvicorn's h11 protocol with what `Timed` adds."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from ...core.exchange import Reply
from ...wire import CLOSE, phrase
from .protocol import Timed
from .state import State


class H11(Timed, H11Protocol):
    """A connection parsed by h11."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.loop: Any = Loop(self.loop, self)

    @property
    def _between(self) -> bool:  # type: ignore[override]
        return self.conn.their_state is h11.IDLE and not self._in_head

    def handle_events(self) -> None:
        self._look_for_head()
        super().handle_events()
        self._look_for_head()  # one may have begun behind the request that was read

    def _look_for_head(self) -> None:
        if self._between and self.conn.trailing_data[0]:
            self._head_began()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._response_complete()

    def begin(self, run: Any, options: dict[str, Any]) -> Any:
        """Start the task of a request, or answer it without one."""
        self._head_complete()
        if not self._answered():
            return asyncio.get_running_loop().create_task(run, **options)
        run.close()
        done = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    def _write(self, reply: Reply, state: State) -> None:
        cycle, conn = self.cycle, self.conn
        headers = [*state.default_headers, *reply.raw_headers]
        if CLOSE not in headers and (reply.close or CLOSE in cycle.scope["headers"]):
            headers.append(CLOSE)
        reason = phrase(reply.status).encode()
        body = b"" if cycle.scope["method"] == "HEAD" else reply.body
        parts = (
            conn.send(h11.Response(status_code=reply.status, headers=headers, reason=reason)),
            conn.send(h11.Data(data=body)),
            conn.send(h11.EndOfMessage()),
        )
        self.transport.write(b"".join(part for part in parts if part))
        cycle.response_started = cycle.response_complete = True
        if conn.our_state is h11.MUST_CLOSE:
            conn.send(h11.ConnectionClosed())
            self.transport.close()
        self.on_response_complete()


class Loop:
    """The event loop as this protocol sees it: what it starts tasks with, and nothing else.

    Uvicorn has no other place to step in between the head and the task of a request.
    """

    __slots__ = ("_protocol", "call_later")

    def __init__(self, loop: Any, protocol: H11) -> None:
        self._protocol = protocol
        self.call_later = loop.call_later

    def create_task(self, run: Any, **options: Any) -> Any:
        """Be the loop's ``create_task``."""
        return self._protocol.begin(run, options)
