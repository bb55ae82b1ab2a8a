"""An HTTP request in ASGI terms, and how a `Reply` is sent."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from functools import lru_cache
from time import monotonic
from typing import Any

from ..core.exchange import Exchange, Reply
from ..signals.peers import certain_peer, peer_address
from ..signals.reach import socket_behind
from ..types import Message, Receive, Scope, Send
from .senses import LoopSenses

current_task: Callable[[asyncio.AbstractEventLoop | None], asyncio.Task[Any] | None]
if sys.version_info >= (3, 12):
    current_task = asyncio.current_task
else:
    # In 3.11 the public function is written in Python and costs three times its look-up.
    current_task = vars(asyncio.tasks)["_current_tasks"].get


def running_task() -> asyncio.Task[Any] | None:
    """Return the task that runs here; ``None`` also where there is no asyncio."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


@lru_cache(maxsize=256)
def _on_the_wire(name: str) -> bytes:
    """Return the name of a header as ASGI has it."""
    return name.lower().encode("latin-1")


async def _nothing() -> None:
    """Swallow a message of an app that has been answered for."""


class ASGIExchange(Exchange):
    """One ASGI request.

    `send` and `receive` are given to the app instead of the server's when a policy observes the
    response or sets a deadline.
    """

    full_path = ""
    senses: LoopSenses
    scope: Scope
    server_send: Send
    server_receive: Receive
    task: asyncio.Task[Any] | None = None
    """The task the app runs in; ``None`` on servers that drive coroutines without tasks."""
    reader: asyncio.Task[Any] | None = None
    """The task that waits for the request's body right now."""
    listener: asyncio.Task[Any] | None = None
    """The task that listens for a disconnect right now, after the body."""
    measured = False
    """Whether `queue_wait` has been measured."""
    received = False
    """Whether the last byte of the request has been handed to the app."""
    answering: asyncio.Task[None] | None = None
    """Sends our answer after a deadline, while the app still runs."""
    cancelled = False
    """Whether we cancelled `task` and owe it an ``uncancel``."""
    told = False
    """Whether we told the app that its client has left, after answering for it."""
    interrupted = False
    """Whether we cancelled the task that waits in `receive` and owe it an ``uncancel``."""

    @property
    def path(self) -> str:
        """Path of the request below the mount point (``root_path``), decoded."""
        scope = self.scope
        path: str = scope["path"]
        root: str = scope.get("root_path", "")
        if root and path.startswith(root) and path[len(root) : len(root) + 1] in ("/", ""):
            return path[len(root) :]
        return path

    @property
    def raw_path(self) -> str | None:
        """The path as the client wrote it, with its escapes; ``None`` where the server hides it."""
        raw: bytes | None = self.scope.get("raw_path")
        # Some servers leave the query in it.
        return None if raw is None else raw.partition(b"?")[0].decode("latin-1")

    @property
    def method(self) -> str:
        """Request method in upper case; the handshake of a websocket is a GET."""
        method: str = self.scope.get("method", "GET")
        return method

    @property
    def query(self) -> str:
        """What stands after the question mark, as it was sent."""
        query: bytes = self.scope.get("query_string", b"")
        return query.decode("latin-1")

    @property
    def peer(self) -> str | None:
        """Address of whoever is connected, from the socket itself where it can be reached."""
        return peer_address(socket_behind(self.server_send), self.client)

    @property
    def certain_peer(self) -> str | None:
        """`peer`, unless a header of the client's may have named it: then no address at all."""
        return certain_peer(socket_behind(self.server_send), self.client, self.header)

    @property
    def client(self) -> str | None:
        """Address of the client as the server tells it: a proxy's word may be in it."""
        client = self.scope.get("client")
        return client[0] if client else None

    def header(self, name: str) -> str | None:
        """Return a request header; several of the same name are joined with commas.

        Those of cookies are joined with semicolons: HTTP/2 clients send them in pieces (RFC 9113,
        8.2.3).
        """
        wanted = _on_the_wire(name)
        found: bytes | None = None
        for key, value in self.scope["headers"]:
            if key == wanted:
                if found is None:
                    found = value
                else:
                    found += (b"; " if wanted == b"cookie" else b",") + value
        return None if found is None else found.decode("latin-1")

    def waited(self, now: float) -> float:
        """Return for how many seconds this request has waited by ``now``: measured when asked."""
        if not self.measured:
            self.measured = True
            self.queue_wait = self.senses.waited(self.scope, self.server_send, self.task, now)
            self.queue_wait -= now - self.arrived
        return super().waited(now)

    def send(self, message: Message) -> Any:
        """Pass a message on, noting the start; swallow it once we have answered ourselves."""
        if self.status:
            return self.server_send(message)
        if self.overdue:
            return _nothing()
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.answered_at = monotonic()
        return self.server_send(message)

    def tell(self, waiting: asyncio.Task[Any]) -> None:
        """Let the task that waits in `receive` hear of a disconnect."""
        self.told = self.interrupted = True
        waiting.cancel()

    async def receive(self) -> Message:
        """Pass the next message on; report a disconnect once we have answered ourselves."""
        if self.overdue:
            return {"type": "http.disconnect"}
        task = running_task()
        if self.received:
            self.listener = task
        else:
            self.reader = task
        try:
            message = await self.server_receive()
        except asyncio.CancelledError:
            # Ours, and only ours: whoever else cancelled the task must not lose that.
            if not self.interrupted or task is None or task.uncancel():
                raise
            self.interrupted = False
            return {"type": "http.disconnect"}
        finally:
            self.reader = self.listener = None
        if message["type"] != "http.request" or not message.get("more_body", False):
            self.received = True
        return message


async def send_reply(reply: Reply, scope: Scope, send: Send) -> None:
    """Send ``reply``, without its body in answer to HEAD."""
    # A list of its own: middlewares further out add to it in place.
    headers = list(reply.raw_headers)
    if reply.close and scope.get("http_version", "1.1").startswith("1"):
        headers.append((b"connection", b"close"))  # HTTP/2 forbids it
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    body = b"" if scope["method"] == "HEAD" else reply.body
    await send({"type": "http.response.body", "body": body})


def exchange_of(scope: Scope, send: Send) -> ASGIExchange:
    """Return a request as it is seen by whoever only looks at it."""
    exchange = ASGIExchange()
    exchange.scope = scope
    exchange.server_send = send
    return exchange
