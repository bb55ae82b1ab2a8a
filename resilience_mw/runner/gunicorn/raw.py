"""Answers that are written to a connection directly, when no app will write one."""

from __future__ import annotations

import contextlib
import functools
import socket
from typing import Any

from ...core.deadline import UNRECEIVED
from ...core.exchange import Reply
from ...wire import CLOSE, written

BUSY = Reply(503, "Service Busy", (("Retry-After", "1"),), reason="draining", close=True)
"""For a request that is still running when its worker has to end."""

TIMEOUT = UNRECEIVED


@functools.cache
def rendered(reply: Reply) -> bytes:
    """Return the whole response, which closes the connection."""
    return written(reply, [*reply.raw_headers, CLOSE])


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
