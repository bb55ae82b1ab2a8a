"""Answers that are written to a connection directly, when no app will write one."""

from __future__ import annotations

import contextlib
import functools
import socket
from http import HTTPStatus
from typing import Any

from ...core.deadline import UNRECEIVED
from ...core.exchange import Reply

BUSY = Reply(503, "Service Busy", (("Retry-After", "1"),), reason="draining", close=True)
"""For a request that is still running when its worker has to end."""

TIMEOUT = UNRECEIVED


@functools.cache
def rendered(reply: Reply) -> bytes:
    """Return the whole response, which closes the connection."""
    head = [f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}"]
    head += [f"{name}: {value}" for name, value in reply.headers]
    head.append("Connection: close")
    return "\r\n".join([*head, "", ""]).encode("latin-1") + reply.body


def answer(sock: Any, reply: Reply) -> None:
    """Send the response as far as the socket takes it at once, and end the sending side.

    What else is still written to the connection, by an app that goes on, fails.
    """
    with contextlib.suppress(OSError):
        sock.settimeout(0)
        sock.send(rendered(reply))
    shut_down(sock, socket.SHUT_WR)


def shut_down(sock: Any, how: int) -> None:
    """Shut one direction of a connection down, waking who reads as if the client had closed.

    A socket of gevent would raise in the reader instead: the one inside it is asked.
    """
    with contextlib.suppress(OSError):
        getattr(sock, "_sock", sock).shutdown(how)
