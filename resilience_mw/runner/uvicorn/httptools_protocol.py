"""Uvicorn's httptools protocol with what `Timed` adds."""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ...core.exchange import Reply
from .protocol import Timed
from .state import State


class HttpTools(Timed, HttpToolsProtocol):
    """A connection parsed by httptools."""

    _direct = False
    _between = True

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._between = False
        self._head_began()

    def on_headers_complete(self) -> None:
        self._head_complete()
        self._direct = True
        super().on_headers_complete()
        self._direct = False

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._between = not self.parser.should_upgrade()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._response_complete()

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        # What had to wait for the response before it is left to a task: answering many of them
        # here would go one call deeper for each.
        if not (self._direct and self._answered()):
            super()._start_asgi_task(cycle, app)

    def _write(self, reply: Reply, state: State) -> None:
        cycle = self.cycle
        close = reply.close or state.draining or not cycle.keep_alive
        head = cycle.scope["method"] == "HEAD"
        self.transport.write(state.render(reply, close=close, head=head))
        cycle.response_started = cycle.response_complete = True
        if close:
            self.transport.close()
        self.on_response_complete()
