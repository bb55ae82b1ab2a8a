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
        self._pending: asyncio.Task[Message] | None = None

    async def __call__(self) -> Message:
        """Return the next message, as ``receive`` does."""
        if self._messages:
            return self._messages.popleft()
        pending, self._pending = self._pending, None
        if pending is None:
            return await self._receive()
        try:
            return await asyncio.shield(pending)
        except asyncio.CancelledError:
            self._pending = pending  # who gives up waiting must not take the message away
            raise

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
        pending, self._pending = self._pending, None
        if pending is None or pending.get_loop().is_closed():
            return
        if not pending.cancel() and not pending.cancelled():
            pending.exception()  # nobody will ask for it any more, and that is no news to log


async def wait_for(
    ticket: Ticket, policy: Policy, ahead: ReadAhead, deadline: float | None = None
) -> None:
    """Return once ``ticket`` is settled.

    A client that leaves, or a cancelled task, abandons it; a slot granted in the same moment is
    passed on, so that it is never lost.

    Args:
        ticket: just handed out by ``policy``.
        policy: whose queue it is in.
        ahead: reads on meanwhile.
        deadline: when the wait ends even if the ticket would allow more (monotonic seconds).
    """
    loop = asyncio.get_running_loop()
    settled: asyncio.Future[None] = loop.create_future()

    def settle() -> None:
        if not settled.done():
            settled.set_result(None)

    def wake() -> None:
        if asyncio._get_running_loop() is loop:
            settle()
        elif not loop.is_closed():  # if it is, the slot comes back when the task is collected
            loop.call_soon_threadsafe(settle)  # a drain, from another thread

    ticket.wake = wake
    until = ticket.expires if deadline is None else min(ticket.expires, deadline)
    timer = loop.call_later(max(0.0, until - time.monotonic()), policy.expire, ticket, until)
    try:
        while ticket.waiting:
            listening = ahead.listen()
            waiting: set[asyncio.Future[Any]] = {settled}
            if listening is not None:
                waiting.add(listening)
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if ahead.gone():
                policy.abandon(ticket, time.monotonic())
                ticket.reply = None  # nobody is there to read it
                break
    except BaseException:
        policy.abandon(ticket, time.monotonic())
        raise
    finally:
        timer.cancel()
