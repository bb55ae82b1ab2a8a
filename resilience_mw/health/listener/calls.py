"""The few system calls that an answer takes, without handing the GIL over at each of them.

On a busy interpreter each hand-over costs up to a switch interval (5 ms) for every thread that
wants to run, and Python's own sockets make one a call, though none of these calls waits.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import socket
import struct
import sys
from typing import Any

_AGAIN = {errno.EAGAIN, errno.EWOULDBLOCK, errno.EINTR}
_NOTHING_LEFT = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_ADDRESS = 128
_NONBLOCK_CLOEXEC = getattr(socket, "SOCK_NONBLOCK", 0) | getattr(socket, "SOCK_CLOEXEC", 0)
_NO_SIGNAL = getattr(socket, "MSG_NOSIGNAL", 0)

Accepted = tuple[int, str | None]


class PlainCalls:
    """With Python's own functions: anywhere, each at the price of a hand-over."""

    def accept(self, listener: Any) -> Accepted | None:
        """Return the descriptor of a new connection and its client; ``None`` = nobody waits.

        Raises:
            OSError: the system has nothing left for it.
        """
        try:
            connection, address = listener.accept()
        except OSError as error:
            if error.errno in _NOTHING_LEFT:
                raise
            return None
        connection.setblocking(False)
        return connection.detach(), address[0]

    def receive(self, descriptor: int, size: int) -> bytes | None:
        """Return what has come; empty at the end or after an error, ``None`` = nothing yet."""
        try:
            return os.read(descriptor, size)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError:
            return b""

    def send(self, descriptor: int, data: bytes) -> int:
        """Return how much of ``data`` was taken; less than 0 = the client is gone."""
        try:
            return os.write(descriptor, data)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError:
            return -1

    def finish(self, descriptor: int) -> None:
        """End the sending side."""
        try:
            with socket.socket(fileno=os.dup(descriptor)) as duplicate:
                duplicate.shutdown(socket.SHUT_WR)
        except OSError:
            return

    def close(self, descriptor: int) -> None:
        """Close it."""
        os.close(descriptor)


class QuickCalls(PlainCalls):
    """With the C library's, which keep the GIL: on Linux.

    Args:
        library: the C library, loaded so that it keeps the GIL.
    """

    def __init__(self, library: Any) -> None:
        self._accept = library.accept4
        self._receive = library.recv
        self._send = library.send
        self._shutdown = library.shutdown
        self._close = library.close
        self._receive.restype = self._send.restype = ctypes.c_ssize_t
        size = ctypes.c_size_t
        self._receive.argtypes = (ctypes.c_int, ctypes.c_char_p, size, ctypes.c_int)
        self._send.argtypes = (ctypes.c_int, ctypes.c_char_p, size, ctypes.c_int)

    def accept(self, listener: Any) -> Accepted | None:
        """As without the C library."""
        address = ctypes.create_string_buffer(_ADDRESS)
        length = ctypes.c_uint(_ADDRESS)
        number = listener.fileno()
        found = self._accept(number, address, ctypes.byref(length), _NONBLOCK_CLOEXEC)
        if found < 0:
            number = ctypes.get_errno()
            if number in _NOTHING_LEFT:
                raise OSError(number, os.strerror(number))
            return None
        return found, _client(address.raw)

    def receive(self, descriptor: int, size: int) -> bytes | None:
        """Return what has come; empty at the end or after an error, ``None`` = nothing yet."""
        buffer = ctypes.create_string_buffer(size)
        got = self._receive(descriptor, buffer, size, 0)
        if got < 0:
            return None if ctypes.get_errno() in _AGAIN else b""
        return buffer.raw[:got]

    def send(self, descriptor: int, data: bytes) -> int:
        """Return how much of ``data`` was taken; less than 0 = the client is gone."""
        sent: int = self._send(descriptor, data, len(data), _NO_SIGNAL)
        return 0 if sent < 0 and ctypes.get_errno() in _AGAIN else sent

    def finish(self, descriptor: int) -> None:
        """End the sending side."""
        self._shutdown(descriptor, socket.SHUT_WR)

    def close(self, descriptor: int) -> None:
        """Close it."""
        self._close(descriptor)


def _client(address: bytes) -> str | None:
    (family,) = struct.unpack_from("=H", address)
    if family == socket.AF_INET:
        return socket.inet_ntop(family, address[4:8])
    if family == socket.AF_INET6:
        return socket.inet_ntop(family, address[8:24])
    return None


@functools.cache
def calls() -> PlainCalls:
    """Return the quickest calls that there are here."""
    if sys.platform != "linux":
        return PlainCalls()
    try:
        return QuickCalls(ctypes.PyDLL(None, use_errno=True))
    except (OSError, AttributeError):
        return PlainCalls()
