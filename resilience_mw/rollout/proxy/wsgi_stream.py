"""Wait for an upstream in a thread, which nobody can interrupt, and yet look around.

httpcore hands a timeout down to the socket as it got it, so a number that knows more can tell our
stream there when to give up, and whom for.
"""

from __future__ import annotations

import math
import socket
import ssl
from collections.abc import Callable, Iterable
from time import monotonic
from typing import Any, Self

import httpcore

from .errors import ClientGone

STUCK = 2.0
"""Seconds without a byte taken until an answer that has come is read instead of writing on: a
refusal may leave a large request unread."""

LOOK_AROUND = 0.25
"""Seconds between two looks whether the client is still there."""


class Patience(float):
    """Seconds to wait for a read.

    Args:
        seconds: for each read; ``inf`` = for ever.
        ends: when to give up at last, however much came until then (monotonic seconds).
        gone: whether the client has left.
    """

    ends: float
    gone: Callable[[], bool]

    def __new__(cls, seconds: float, ends: float, gone: Callable[[], bool]) -> Self:
        self = super().__new__(cls, seconds)
        self.ends = ends
        self.gone = gone
        return self


class Stream(httpcore.NetworkStream):
    """A connection whose reads have `Patience`."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read what is there, or wait for it.

        Raises:
            ClientGone: nobody waits for it any more.
        """
        if not isinstance(timeout, Patience):
            return self._stream.read(max_bytes, timeout)
        ends = min(timeout.ends, monotonic() + timeout)
        while (left := ends - monotonic()) > 0.0:
            try:
                return self._stream.read(max_bytes, min(left, LOOK_AROUND))
            except httpcore.ReadTimeout:
                if timeout.gone():
                    raise ClientGone from None
        raise httpcore.ReadTimeout("no answer in time")

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write all of it, unless the upstream answers instead of taking it.

        Raises:
            WriteError: it does; httpcore reads its answer then.
        """
        sock = self._stream.get_extra_info("socket")
        if not isinstance(sock, socket.socket) or isinstance(sock, ssl.SSLSocket):
            self._stream.write(buffer, timeout)
            return
        left = memoryview(buffer)
        ends = monotonic() + (math.inf if timeout is None else timeout)
        try:
            while left:
                sock.settimeout(min(STUCK, max(0.001, ends - monotonic())))
                try:
                    left = left[sock.send(left) :]
                except TimeoutError:
                    if self._stream.get_extra_info("is_readable"):
                        raise httpcore.WriteError("it answers already") from None
                    if monotonic() >= ends:
                        raise httpcore.WriteTimeout("it takes nothing") from None
        except OSError as error:
            raise httpcore.WriteError(str(error)) from None

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        """Return the same with TLS."""
        return Stream(self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        """Return what httpcore asks of a stream."""
        return self._stream.get_extra_info(info)


class Network(httpcore.NetworkBackend):
    """Makes such connections."""

    def __init__(self) -> None:
        self._network = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect."""
        return Stream(self._network.connect_tcp(host, port, timeout, local_address, socket_options))
