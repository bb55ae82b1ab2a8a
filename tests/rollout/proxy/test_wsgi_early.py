"""An upstream that answers a WSGI request before it has all of it."""

from __future__ import annotations

import socket
import threading
from typing import Any

import pytest

from resilience_mw.rollout.proxy.wsgi import proxy
from tests.wsgi.harness import call

from .raw import RawUpstream


class Endless:
    """An input that never ends."""

    def read(self, size: int) -> bytes:
        """Return as much as is asked for."""
        return b"x" * size


@pytest.mark.parametrize(
    "facts",
    [
        {"CONTENT_LENGTH": "300000000"},
        {"HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input_terminated": True},
    ],
    ids=["length", "chunks"],
)
@pytest.mark.parametrize("then", ["closes", "is deaf"])
def test_an_early_refusal_reaches_the_client(facts, then):
    """Whether the upstream hangs up, with the upload unread, or waits for the end of time."""
    over = threading.Event()

    def talk(connection: socket.socket, head: bytes) -> None:
        connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\n\r\nbig!")
        if then == "closes":
            connection.close()
        else:
            over.wait(10)

    more: dict[str, Any] = {"wsgi.input": Endless(), **facts}
    with RawUpstream(talk) as raw:
        app = proxy(raw.url)
        assert call(app, method="POST", **more) == (413, b"big!")
        over.set()
        app.close()


def test_an_upload_that_is_taken_slowly_is_not_an_early_refusal():
    """The response has begun, and the rest of the request is still wanted."""
    taken: list[int] = []

    def talk(connection: socket.socket, head: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
        left = 5_000_000 - 65_536
        threading.Event().wait(0.5)
        while left > 0:
            left -= len(connection.recv(65_536))
        taken.append(left)
        connection.sendall(b"ok")

    more: dict[str, Any] = {"wsgi.input": Endless(), "CONTENT_LENGTH": "5000000"}
    with RawUpstream(talk) as raw:
        app = proxy(raw.url)
        assert call(app, method="POST", **more) == (200, b"ok")
        assert taken
        app.close()
