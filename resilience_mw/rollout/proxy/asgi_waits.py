"""End a request to an upstream from outside, without cancelling it.

httpcore loses a connection, which then stays open for ever, if it is cancelled between two of its
own steps. All it ever waits for is in our hands, though: the network and the request's body. So it
runs shielded from cancellation, and what it waits for fails instead.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

import anyio

from .errors import ClientGone

if TYPE_CHECKING:
    from .asgi_stream import Stream

Result = TypeVar("Result")


class Waits:
    """What one request waits for until its response begins: one thing at a time.

    Args:
        deadline: when to wait no longer, in the loop's time.
    """

    __slots__ = ("_gone", "_scope", "deadline", "stream")

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.stream: Stream | None = None
        """The connection on which the request is sent, once that has begun."""
        self._gone = False
        self._scope: anyio.CancelScope | None = None

    def leave(self) -> None:
        """Let what is waited for fail, now and from now on: the client has left."""
        self._gone = True
        if self._scope is not None:
            self._scope.cancel()

    async def wait(
        self, work: Awaitable[Result], seconds: float | None, late: type[Exception]
    ) -> Result:
        """Return what ``work`` does.

        Raises:
            ClientGone: nobody waits for it any more.
            Exception: of type ``late``, after so many seconds, or at the deadline.
        """
        until = self.deadline
        if seconds is not None:
            until = min(until, anyio.current_time() + seconds)
        with anyio.CancelScope(deadline=until) as self._scope:
            if self._gone:
                self._scope.cancel()
            return await work
        self._scope = None
        if self._gone:
            raise ClientGone
        raise late("no answer in time")


UNBOUND = Waits(math.inf)
calling: ContextVar[Waits] = ContextVar("resilience_mw.proxy", default=UNBOUND)
"""Of the request that is being handled here."""
