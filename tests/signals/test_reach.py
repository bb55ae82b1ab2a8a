"""From a `send` to the socket behind it, through what middlewares put around it."""

from __future__ import annotations

import functools
import socket
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import pytest

from resilience_mw.signals.reach import comes_from_thread, environ_socket, socket_behind


@pytest.fixture
def sock() -> Iterator[socket.socket]:
    """A socket to be found."""
    with socket.socket() as found:
        yield found


class Transport:
    def __init__(self, sock):
        self._sock = sock

    def get_extra_info(self, name):
        return self._sock if name == "socket" else None


class Cycle:
    """What Uvicorn's request cycle looks like from outside."""

    def __init__(self, sock, kind="transport"):
        setattr(self, kind, Transport(sock))

    async def send(self, message):
        """Write the message."""


class Responder:
    """A middleware's object that keeps the send it wraps."""

    def __init__(self, send, name):
        setattr(self, name, send)

    async def forward(self, message):
        """Change the message and pass it on."""


class CallableSend:
    """A send that is an object."""

    def __init__(self, send):
        self._send = send

    async def __call__(self, message):
        """Pass the message on."""


def _closure(send):
    started = False

    async def _send(message):
        nonlocal started
        started = True
        await send(message)

    return _send


def _closure_under_another_name(original_send):
    async def forward(message):
        await original_send(message)

    return forward


class Worker:
    """A server whose send is a function inside of a method, as in Gunicorn's asgi worker."""

    def __init__(self, sock):
        self.transport = Transport(sock)

    def make(self):
        async def send(message):
            self.transport.get_extra_info("peername")

        return send


class WithSend:
    async def send(self, send, message):
        """Change the message and pass it on, as Starlette's CORS middleware does."""


WRAPPERS: dict[str, Callable[[Any], Any]] = {
    "nothing": lambda send: send,
    "closure": _closure,
    "closure, other name": _closure_under_another_name,
    "responder": lambda send: Responder(send, "send").forward,
    "responder, private": lambda send: Responder(send, "_send").forward,
    "our exchange": lambda send: Responder(send, "server_send").forward,
    "partial": lambda send: functools.partial(WithSend().send, send=send),
    "partial of send": lambda send: functools.partial(send),
    "callable object": CallableSend,
}


@pytest.mark.parametrize("outer", WRAPPERS.values(), ids=WRAPPERS)
@pytest.mark.parametrize("inner", WRAPPERS.values(), ids=WRAPPERS)
def test_the_socket_is_found_through_two_wrappers(sock, outer, inner):
    """Any pair of the usual ways to wrap a send leads to the socket."""
    assert socket_behind(outer(inner(Cycle(sock).send))) is sock
    assert socket_behind(outer(inner(Worker(sock).make()))) is sock


def test_a_stream_writer_will_do(sock):
    """Hypercorn has a writer where Uvicorn has a transport."""
    assert socket_behind(Cycle(sock, "writer").send) is sock


def test_thirty_wrappers_are_followed_and_no_more(sock):
    """The walk has an end, whatever is wrapped around what."""
    send = Cycle(sock).send
    for _ in range(30):
        send = _closure(send)
    assert socket_behind(send) is sock
    for _ in range(30):
        send = _closure(send)
    assert socket_behind(send) is None


def _plain():
    async def send(message):
        """Go nowhere."""

    return send


def _own_method():
    class Stream:
        async def send(self, message):
            """Belong to an object that keeps no other send, as anyio's streams do."""

    return Stream().send


def _round_trip():
    first, second = Responder(None, "send"), Responder(None, "send")
    first.send, second.send = second.forward, first.forward  # type: ignore[attr-defined]
    return first.forward


def _empty_cell():
    send = None

    async def wrapper(message):
        return send  # noqa: F821

    del send
    return wrapper


def _raising():
    class Odd:
        @property
        def transport(self):
            raise RuntimeError("working outside of a context")

        async def forward(self, message):
            """Never called."""

    return Odd().forward


def _foreign_transport():
    class Client:
        transport = "HTTP/1.1"

        async def forward(self, message):
            """A method of something that has a transport of another kind."""

    return Client().forward


@pytest.mark.parametrize(
    "make",
    [
        _plain,
        _own_method,
        _round_trip,
        _empty_cell,
        _raising,
        _foreign_transport,
        AsyncMock,
        MagicMock,
        lambda: None,
        lambda: print,
        lambda: 3,
    ],
)
def test_whatever_else_a_send_is_ends_the_walk(make):
    """No socket, and no error, behind anything that is not recognized."""
    assert not isinstance(socket_behind(make()), socket.socket)


def test_a_closed_transport_is_no_error():
    """uvloop raises when a closed transport is asked for its socket."""

    class Closed:
        def get_extra_info(self, name):
            raise RuntimeError("the handler is closed")

    cycle = Cycle(None)
    cycle.transport = Closed()  # type: ignore[attr-defined]
    assert socket_behind(cycle.send) is None


def test_a_send_made_of_native_code_comes_from_a_thread(sock):
    """Granian's send is not Python, and its requests come from another thread."""
    native = [None].append
    assert comes_from_thread(native)
    assert comes_from_thread(_closure(native))
    assert not comes_from_thread(Cycle(sock).send)
    assert not comes_from_thread(_plain())


def test_sockets_of_wsgi_servers(sock):
    """Gunicorn and Werkzeug hand the socket over, Waitress a method of its channel."""

    class Channel:
        socket = sock

        def check_client_disconnected(self):
            """Never called."""

    assert environ_socket({"gunicorn.socket": sock}) is sock
    assert environ_socket({"werkzeug.socket": sock}) is sock
    assert (
        environ_socket({"waitress.client_disconnected": Channel().check_client_disconnected})
        is sock
    )
    assert environ_socket({"waitress.client_disconnected": lambda: False}) is None
    assert environ_socket({}) is None
