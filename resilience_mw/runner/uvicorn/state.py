"""What the connections of one server share."""

from __future__ import annotations

import asyncio
import math
import time
from typing import Any, Protocol

from uvicorn.server import ServerState

from ...asgi import Guard
from ...core.exchange import Reply
from ...wire import CLOSE, written

Headers = list[tuple[bytes, bytes]]

NEVER = math.inf


class Connection(Protocol):
    """What `Sweep` watches."""

    due: float
    """When `expire` is to be called (monotonic seconds); `NEVER` = not at all."""

    def expire(self) -> None: ...


class Sweep:
    """One coarse timer for all connections, instead of one or two timers a request.

    Args:
        loop: where it runs.
        shortest: the shortest time that is watched (seconds); it is kept to within a twentieth.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, shortest: float) -> None:
        self._loop = loop
        self._period = min(0.5, max(0.01, shortest / 20))
        self._connections: set[Connection] = set()
        self._handle: asyncio.TimerHandle | None = None

    def add(self, connection: Connection) -> None:
        """Watch a connection until it is discarded."""
        self._connections.add(connection)
        if self._handle is None:
            self._handle = self._loop.call_later(self._period, self._look)

    def discard(self, connection: Connection) -> None:
        """Watch it no more."""
        self._connections.discard(connection)

    def _look(self) -> None:
        now = time.monotonic()
        for connection in [c for c in self._connections if c.due <= now]:
            connection.expire()
        self._handle = None
        if self._connections:
            self._handle = self._loop.call_later(self._period, self._look)


class State(ServerState):
    """Uvicorn's shared state, a guard that answers ahead, and a last word for every response.

    Attributes:
        guard: the guard that every request reaches first, if there is one.
        draining: from now on each response is the last of its connection.
    """

    guard: Guard | None = None
    refusing_until = 0.0
    """Until when requests are looked at before they are parsed (monotonic seconds)."""
    sweep: Sweep | None = None

    def __init__(self) -> None:
        self.draining = False
        self._given: Headers = []
        self._headers: Headers = []
        self._rendered: dict[tuple[Reply, bool, bool], bytes] = {}
        super().__init__()

    @property
    def default_headers(self) -> Headers:
        """Headers of every response; Uvicorn sets them anew each second, for the date."""
        return self._headers

    @default_headers.setter
    def default_headers(self, headers: Headers) -> None:
        self._given = headers
        self._headers = [*headers, CLOSE] if self.draining else headers
        self._rendered.clear()

    def drain(self) -> None:
        """Say ``Connection: close`` in every response from now on."""
        self.draining = True
        self.default_headers = self._given

    def render(self, reply: Reply, *, close: bool, head: bool) -> bytes:
        """Return a whole HTTP/1.1 response; the same bytes for all who get it this second."""
        key = (reply, close, head)
        rendered = self._rendered.get(key)
        if rendered is None:
            headers = [*self._given, *reply.raw_headers, *([CLOSE] if close else [])]
            rendered = self._rendered[key] = written(reply, headers, head=head)
        return rendered


def sweep_of(state: Any, loop: asyncio.AbstractEventLoop, shortest: float) -> Sweep:
    """Return the sweep of a server's state, which may be Uvicorn's own."""
    sweep: Sweep | None = getattr(state, "sweep", None)
    if sweep is None:
        sweep = state.sweep = Sweep(loop, shortest)
    return sweep
