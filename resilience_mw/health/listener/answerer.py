"""A very small HTTP/1.1 server: one answer a connection, everything bounded, never waiting."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable
from typing import Any

from ...core.exchange import Reply
from ...wire import CLOSE, written
from .calls import Accepted, calls
from .native import Poller, original
from .request import LONGEST_HEAD, Request, read

MOST = 64
"""Connections open at once; the oldest makes room, so that a probe always gets through."""

BACKLOG = 4096
"""Connections that may wait, or as many as the system lets; those without a request do so, too,
for a second."""

PATIENCE = 5.0
"""Seconds in which a request must have come, and its answer have been taken."""

RESPITE = 0.01
"""Seconds until the next attempt to accept when the system has nothing left for it."""

FAREWELL = 1.0
"""Seconds that a client may take to notice the end, when more came than was read."""

NOT_FOUND = Reply(404, "Not Found")
BAD = Reply(400, "Bad Request")
TOO_LONG = Reply(431, "Request Header Fields Too Large")
FAILED = Reply(500, "Internal Server Error")

Respond = Callable[[Request, str | None], Reply | None]

logger = logging.getLogger("resilience_mw")


class Connection:
    """One client."""

    __slots__ = ("answered", "data", "due", "peer", "unsent")

    def __init__(self, peer: str | None, due: float) -> None:
        self.peer = peer
        self.due = due
        self.data = b""
        self.unsent = b""
        self.answered = False


class Answerer:
    """Serves the connections of a listening socket, whenever its thread is awake.

    Args:
        listener: a listening socket that does not block.
        poller: told which descriptors to wait for.
        respond: returns the answer to a request from an address; ``None`` = not found.
    """

    def __init__(self, listener: Any, poller: Poller, respond: Respond) -> None:
        self._listener = listener
        self._poller = poller
        self._respond = respond
        self._calls = calls()
        self._connections: dict[int, Connection] = {}
        self._complained = False
        self._spare = _spare()
        poller.watch(listener.fileno())

    def next_due(self) -> float:
        """Return when somebody's time is over (monotonic seconds)."""
        return min((c.due for c in self._connections.values()), default=float("inf"))

    def serve(self, ready: list[int], now: float) -> None:
        """Go on with the connections that are ready, and end those whose time is over."""
        if self._listener.fileno() in ready:
            self.accept(now)
        for descriptor in ready:
            connection = self._connections.get(descriptor)
            if connection is not None:
                self._go_on(descriptor, connection, now)
        if self._spare < 0:
            self._spare = _spare()
        for descriptor in [fd for fd, c in self._connections.items() if c.due <= now]:
            self._drop(descriptor)

    def accept(self, now: float) -> None:
        """Take in who waits, and answer at once whoever has asked already."""
        for _ in range(MOST):
            try:
                accepted = self._calls.accept(self._listener)
            except OSError:
                accepted = self._accept_at_last()
            if accepted is None:
                return
            descriptor, peer = accepted
            if len(self._connections) >= MOST:
                self._drop(next(iter(self._connections)))
            connection = self._connections[descriptor] = Connection(peer, now + PATIENCE)
            self._poller.watch(descriptor)
            self._go_on(descriptor, connection, now)

    def close(self) -> None:
        """Close everything, the listening socket first."""
        self._poller.forget(self._listener.fileno())
        self._listener.close()
        for descriptor in list(self._connections):
            self._drop(descriptor)
        self._give_spare()

    def abandon(self) -> None:
        """Close the descriptors and nothing else: in a child of the process that they are of."""
        self._listener.close()
        for descriptor in self._connections:
            self._calls.close(descriptor)
        self._connections.clear()
        self._give_spare()

    def _accept_at_last(self) -> Accepted | None:
        """Accept although the process has no descriptor left, which does not mean it is dead."""
        if self._connections:
            self._drop(next(iter(self._connections)))
        else:
            self._give_spare()
        try:
            return self._calls.accept(self._listener)
        except OSError:
            original("time", "sleep")(RESPITE)  # another thread was faster, or all memory is taken
            return None

    def _give_spare(self) -> None:
        if self._spare >= 0:
            os.close(self._spare)
            self._spare = -1

    def _go_on(self, descriptor: int, connection: Connection, now: float) -> None:
        if connection.unsent:
            self._send(descriptor, connection, connection.unsent, now)
            return
        data = self._calls.receive(descriptor, LONGEST_HEAD)
        if data is None:
            return
        if not data:
            self._drop(descriptor)
        elif not connection.answered:
            connection.data += data
            self._answer(descriptor, connection, now)

    def _answer(self, descriptor: int, connection: Connection, now: float) -> None:
        request: Request | None = None
        reply: Reply | None
        try:
            request = read(connection.data)
        except ValueError:
            reply = BAD
        else:
            if request is not None:
                reply = self._reply(request, connection.peer)
            elif len(connection.data) > LONGEST_HEAD:
                reply = TOO_LONG
            else:
                return
        alone = request is not None and request.alone and request.method in ("GET", "HEAD")
        connection.answered = True
        connection.data = b""
        head = request is not None and request.method == "HEAD"
        if not alone:
            connection.due = min(connection.due, now + FAREWELL)
        answer = written(reply, (*reply.raw_headers, CLOSE), head=head)
        self._send(descriptor, connection, answer, now, linger=not alone)

    def _reply(self, request: Request, peer: str | None) -> Reply:
        try:
            return self._respond(request, peer) or NOT_FOUND
        except Exception:
            if not self._complained:
                self._complained = True
                logger.exception("a probe could not be answered (said once)")
            return FAILED

    def _send(
        self,
        descriptor: int,
        connection: Connection,
        data: bytes,
        now: float,
        *,
        linger: bool = False,
    ) -> None:
        sent = self._calls.send(descriptor, data)
        connection.unsent = data[max(sent, 0) :]
        if sent < 0:
            self._drop(descriptor)
        elif connection.unsent:
            self._poller.watch(descriptor, writing=True)
        elif linger:
            # Closing with something unread would take the answer back.
            self._calls.finish(descriptor)
            self._poller.watch(descriptor)
        else:
            self._drop(descriptor)

    def _drop(self, descriptor: int) -> None:
        del self._connections[descriptor]
        self._poller.forget(descriptor)
        self._calls.close(descriptor)


def _spare() -> int:
    """Return a descriptor to give away when there is no other; -1 = there is none already."""
    try:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1


def listen(host: str, port: int) -> Any:
    """Return a listening socket that does not block.

    Raises:
        OSError: the address cannot be had.
    """
    make, look_up = original("socket", "socket"), original("socket", "getaddrinfo")
    family, kind, protocol, _, address = look_up(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = make(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6 and host == "::":
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        if hasattr(socket, "TCP_DEFER_ACCEPT"):
            # Wakes us when the request is there, and so once instead of twice.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener
