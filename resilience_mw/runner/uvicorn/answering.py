"""Answers that a connection gives without a task: the guard is asked in the protocol."""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.utils import get_client_addr, get_path_with_query_string

from ...config import Runner
from ...core.exchange import Reply
from ...signals.waited import ARRIVED
from .simple import simple_request
from .state import NEVER, State

HOT = 1.0
"""Seconds after a refusal for which requests are looked at before they are parsed."""


class Answering(asyncio.Protocol, ABC):
    """What asks the guard, and writes what it says.

    Attributes:
        runner: the times in force.
        due: when the time of what the connection is doing now is up.
    """

    runner: Runner
    due = NEVER
    transport: asyncio.Transport
    server_state: Any
    cycle: Any
    root_path: str
    server: Any
    client: Any
    access_log: bool
    access_logger: logging.Logger
    _unset_keepalive_if_required: Callable[[], None]
    _read_at = 0.0
    _asked = False
    """Whether the guard has been asked about the request that is about to be parsed."""

    def _hot_until(self) -> float:
        until: float = getattr(self.server_state, "refusing_until", 0.0)
        return until

    def _answered(self) -> bool:
        """Answer the request at once if the guard says how; returns whether it did."""
        cycle, state = self.cycle, self.server_state
        asked, self._asked = self._asked, False
        guard = getattr(state, "guard", None)
        if guard is None or asked or cycle.waiting_for_100_continue:
            return False
        reply = guard.ahead(cycle.scope, cycle.send)
        if reply is None:
            return False
        if reply.reason is not None:
            state.refusing_until = time.monotonic() + HOT
        self._log(cycle.scope, reply)
        self._write(reply, state)
        return True

    def _refused(self, data: bytes, now: float) -> bool:
        """Answer a simple request before it is parsed; returns whether it did."""
        scope = simple_request(data, self.root_path)
        if scope is None:
            return False
        scope["server"], scope["client"], scope[ARRIVED] = self.server, self.client, self._read_at
        state: State = self.server_state
        assert state.guard is not None
        reply = state.guard.ahead(scope, self._send)
        if reply is None:
            self._asked = True
            return False
        if reply.reason is not None:
            state.refusing_until = now + HOT
        self._log(scope, reply)
        close = reply.close or state.draining
        self.transport.write(state.render(reply, close=close, head=scope["method"] == "HEAD"))
        state.total_requests += 1
        self._unset_keepalive_if_required()
        self.due = now + self.runner.keep_alive_timeout
        if close:
            self.transport.close()
        return True

    async def _send(self, message: Any) -> None:
        """Stand for the server's ``send``: it leads to the socket, and nothing is sent by it."""
        raise RuntimeError("an answer in the protocol is written, not sent")

    def _log(self, scope: Any, reply: Reply) -> None:
        if self.access_log:
            self.access_logger.info(
                '%s - "%s %s HTTP/%s" %d',
                get_client_addr(scope),
                scope["method"],
                get_path_with_query_string(scope),
                scope["http_version"],
                reply.status,
            )

    @abstractmethod
    def _write(self, reply: Reply, state: State) -> None:
        """Write an answer in the words of the parser."""
