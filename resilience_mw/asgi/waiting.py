"""Wait in a gate's queue, and notice when the client has left."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Any

from ..core.exchange import Exchange
from ..core.policy import Policy
from ..core.ticket import Ticket
from ..types import Message, Receive

MAX_BUFFERED = 65_536
"""Bytes of a body read ahead while waiting. Past that we stop listening, and so learn of a
disconnect only when the app does."""


class ReadAhead:
    """The server's ``receive`` for a request that waits.

    What is read while listening for a disconnect is given to the app afterwards, in order.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._messages: deque[Message] = deque()
        self._buffered = 0
        self._complete = False
        self._pending: asyncio.Task[Message] | None = None

    async def __call__(self) -> Message:
        """Return the next message, as ``receive`` does."""
        if self._messages:
            return self._messages.popleft()
        if self._pending is not None:
            pending, self._pending = self._pending, None
            return await pending
        return await self._receive()

    def listen(self) -> asyncio.Task[Message] | None:
        """Return the task that reads on; ``None`` when enough has been read ahead."""
        if self._pending is None and self._buffered < MAX_BUFFERED:
            self._pending = asyncio.ensure_future(self._read())
        return self._pending

    async def _read(self) -> Message:
        return await self._receive()

    def gone(self) -> bool:
        """Take what the task has read; returns True if it says that the client left."""
        if self._pending is None or not self._pending.done():
            return False
        message = self._pending.result()
        self._pending = None
        if message["type"] == "http.disconnect":
            return True
        self._messages.append(message)
        self._buffered += len(message.get("body", b""))
        return False

    def close(self, exchange: Exchange | None = None, now: float = 0.0) -> None:
        """Stop reading (shaped like a policy's exit, as it is run with them)."""
        if self._pending is not None:
            self._pending.cancel()
            self._pending = None


async def wait_for(ticket: Ticket, policy: Policy, ahead: ReadAhead) -> None:
    """Return once ``ticket`` is settled.

    A client that leaves, or a cancelled task, abandons it; a slot granted in the same moment is
    passed on, so that it is never lost.
    """
    loop = asyncio.get_running_loop()
    settled: asyncio.Future[None] = loop.create_future()
    ticket.wake = lambda: None if settled.done() else settled.set_result(None)
    patience = max(0.0, ticket.expires - time.monotonic())
    timer = loop.call_later(patience, policy.expire, ticket, ticket.expires)
    try:
        while True:
            listening = ahead.listen()
            waiting: set[asyncio.Future[Any]] = {settled}
            if listening is not None:
                waiting.add(listening)
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if ahead.gone():
                policy.abandon(ticket, time.monotonic())
                break
            if settled.done():
                break
    except BaseException:
        policy.abandon(ticket, time.monotonic())
        raise
    finally:
        timer.cancel()
