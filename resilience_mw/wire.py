"""An answer as it goes over an HTTP/1.1 connection, for whoever writes to one directly."""

from __future__ import annotations

from collections.abc import Iterable
from http.client import responses

from .core.exchange import Reply

CLOSE = (b"connection", b"close")
"""The header that makes a response the last of its connection."""


def written(reply: Reply, headers: Iterable[tuple[bytes, bytes]], *, head: bool = False) -> bytes:
    """Return the whole response.

    Args:
        reply: its status and body.
        headers: all that it gets, those of the reply among them.
        head: it answers HEAD, and so has no body.
    """
    lines = [f"HTTP/1.1 {reply.status} {phrase(reply.status)}".encode()]
    lines += [name + b": " + value for name, value in headers]
    return b"\r\n".join([*lines, b"", b"" if head else reply.body])


def phrase(status: int) -> str:
    """Return the reason phrase of a status; empty if nobody has registered one."""
    return responses.get(status, "")
