"""What the Linux kernel knows about our TCP sockets: age of the last data, depth of accept queues.

Both come from `getsockopt(IPPROTO_TCP, TCP_INFO)`, whose first 56 bytes have been the same since
`struct tcp_info` exists (linux/tcp.h). Everywhere else, and for Unix sockets, the answer is `None`.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import sys
from typing import Any, Protocol

from .descriptor import getsockopt

__all__ = ["Listener", "accept_queue", "has_tcp_info", "listening_sockets", "tcp_age"]

_LINUX = sys.platform in ("linux", "android")
_IPPROTO_TCP = 6
_TCP_INFO = 11
_INFO_SIZE = 56
_LISTEN = 10
"""`TCP_LISTEN` of linux/tcp_states.h; the state is the first byte."""

_last_data_recv = struct.Struct("=52xI").unpack
_state_and_unacked = struct.Struct("=B23xI").unpack_from


class Socket(Protocol):
    """Anything that can be asked: `socket.socket`, asyncio's and uvloop's stand-ins, `Listener`."""

    def getsockopt(self, level: int, option: int, size: int, /) -> Any: ...


def tcp_age(sock: Socket | int | None) -> float | None:
    """Return the seconds since data last arrived on a connection (`tcpi_last_data_recv`).

    Accurate to one kernel tick (about 4 ms). A connection that has received nothing yet is as old
    as its handshake. `None`: not TCP, closed, or not Linux.

    Args:
        sock: a socket-like object or a file descriptor; only looked at, never closed.
    """
    info = _tcp_info(sock)
    if info is None:
        return None
    age: int = _last_data_recv(info)[0]
    return age * 1e-3


def accept_queue(sock: Socket | int | None) -> int | None:
    """Return how many established connections wait to be accepted on a listening TCP socket.

    For a listening socket the kernel reports the length of its accept queue as `tcpi_unacked`.
    `None`: not a listening TCP socket (any more), or not Linux.

    Args:
        sock: a socket-like object or a file descriptor; only looked at, never closed.
    """
    info = _tcp_info(sock)
    if info is None:
        return None
    state, depth = _state_and_unacked(info)
    return depth if state == _LISTEN else None


def has_tcp_info(sock: Any) -> bool:
    """Return whether `tcp_age` can ever answer for this socket, even if it is closed by now."""
    family = getattr(sock, "family", None)
    return _LINUX and family in (socket.AF_INET, socket.AF_INET6) and hasattr(sock, "getsockopt")


def _tcp_info(sock: Socket | int | None) -> Any:
    """Return at least `_INFO_SIZE` bytes of `struct tcp_info`, or `None`."""
    if not _LINUX or sock is None:
        return None
    try:
        if isinstance(sock, int):
            info = getsockopt(sock, _IPPROTO_TCP, _TCP_INFO, _INFO_SIZE)
        else:
            info = sock.getsockopt(_IPPROTO_TCP, _TCP_INFO, _INFO_SIZE)
    except (OSError, ValueError, TypeError, AttributeError):
        return None
    return info if len(info) == _INFO_SIZE else None


class Listener:
    """A listening TCP socket of this process, known by its descriptor only.

    It owns nothing: a duplicate would keep the port open after the server has closed its socket,
    and clients would hang in a queue that nobody empties. Once that descriptor is closed or reused,
    `accept_queue` of this object is `None`.

    Attributes:
        fd: the server's descriptor.
        address: what the socket is bound to, as `getsockname` tells it.
    """

    __slots__ = ("address", "fd")

    def __init__(self, fd: int, address: Any) -> None:
        self.fd = fd
        self.address = address

    def getsockopt(self, level: int, option: int, size: int, /) -> bytes:
        """Do what `socket.getsockopt` does; raises `OSError` when it cannot."""
        return getsockopt(self.fd, level, option, size)

    def close(self) -> None:
        """Forget the descriptor, which stays open: it is the server's."""
        self.fd = -1

    def __repr__(self) -> str:
        return f"Listener(fd={self.fd}, address={self.address!r})"


def listening_sockets(port: int | None = None) -> list[Listener]:
    """Return the listening TCP sockets among this process's descriptors, each once.

    Costs about a microsecond a descriptor. Call it after a fork, and again once every depth is
    `None`. Empty where `/proc` or TCP_INFO is missing.

    Args:
        port: only those bound to this port (a metrics port's queue is not ours).
    """
    found: dict[int, Listener] = {}
    for fd in _descriptors():
        if accept_queue(fd) is None:
            continue
        # Asked through a duplicate that lives no longer than this: a socket object on the
        # server's own descriptor would close it if an exception came at the wrong moment.
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(fd)) as duplicate:
            address = duplicate.getsockname()
            if port is None or address[1] == port:
                found.setdefault(os.fstat(fd).st_ino, Listener(fd, address))
    return list(found.values())


def _descriptors() -> list[int]:
    try:
        return sorted(int(name) for name in os.listdir("/proc/self/fd"))
    except (OSError, ValueError):
        return []
