"""A fresh connection of the check's own, within its time, and the reason when there is none."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from .address import Address
from .check import CheckFailed

Found = list[tuple[int, Any]]
"""Address families and socket addresses, in the order to try them."""

_REASONS: tuple[tuple[type[Exception], str], ...] = (
    # From the special to the general: the first that fits is the reason.
    (TimeoutError, "timeout"),
    (ssl.SSLCertVerificationError, "certificate"),
    (ssl.SSLError, "tls"),
    (socket.gaierror, "dns"),
    (ConnectionRefusedError, "refused"),
    (ConnectionError, "closed"),
    (EOFError, "closed"),
    (FileNotFoundError, "no socket"),
    (OSError, "unreachable"),
)


def reason_for(error: Exception) -> str:
    """Return what went wrong in a word or two that tell no address."""
    return next((reason for kind, reason in _REASONS if isinstance(error, kind)), "error")


@contextmanager
def reasons() -> Iterator[None]:
    """Turn what sockets raise into `CheckFailed`."""
    try:
        yield
    except (OSError, EOFError) as error:
        # Not chained: the text of the cause may hold addresses.
        raise CheckFailed(reason_for(error)) from None


class Connector:
    """Opens connections to one address, a fresh one each time.

    Names are looked up anew each time too, since the address behind a name changes in fail-overs.
    The system's look-up cannot be interrupted: it runs in a daemon thread, at most one at a time,
    so that a name server which does not answer holds up neither the loop, nor the pool of threads
    that the loop shares with others, nor the end of the process.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._thread: threading.Thread | None = None
        self._lookup: Future[Found] = Future()

    async def open(self, within: float) -> socket.socket:
        """Return a connected, non-blocking socket.

        Args:
            within: seconds for all addresses of the name together; each gets an equal share of
                what is left, so that one that swallows packets leaves time for the next.

        Raises:
            OSError: none of the addresses answers, with the last one's reason.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + within
        candidates = await self._find()
        failure: OSError = socket.gaierror(socket.EAI_NONAME, "no address")
        for tried, (family, address) in enumerate(candidates):
            share = (until - loop.time()) / (len(candidates) - tried)
            try:
                async with asyncio.timeout(share):
                    return await _connect(family, address)
            except OSError as error:
                failure = error
        raise failure

    async def _find(self) -> Found:
        if self._address.path:
            return [(socket.AF_UNIX, self._address.path)]
        host, port = self._address.host, self._address.port
        try:
            return _look_up(host, port, socket.AI_NUMERICHOST)
        except socket.gaierror:
            pass
        # A thread is not alive either in a process that was forked while it ran.
        if self._thread is None or not self._thread.is_alive():
            self._lookup = Future()
            self._lookup.set_running_or_notify_cancel()  # a waiter that gives up cancels nothing
            self._thread = threading.Thread(
                target=_fill, args=(self._lookup, host, port), name="health-dns", daemon=True
            )
            self._thread.start()
        return await asyncio.wrap_future(self._lookup)


def _fill(lookup: Future[Found], host: str, port: int) -> None:
    try:
        lookup.set_result(_look_up(host, port))
    except OSError as error:
        lookup.set_exception(error)
    except UnicodeError:
        lookup.set_exception(socket.gaierror(socket.EAI_NONAME, "not a name"))


def _look_up(host: str, port: int, flags: int = 0) -> Found:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    return [(int(family), address) for family, _, _, _, address in found]


async def _connect(family: int, address: Any) -> socket.socket:
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, address)
        if _reached_itself(connection):
            raise ConnectionRefusedError
    except BaseException:
        connection.close()
        raise
    return connection


def _reached_itself(connection: socket.socket) -> bool:
    """Whether it was given, as its own, the very port that it asks for, and nobody listens there.

    TCP lets two sockets connect to each other without a listener (RFC 9293, section 3.5), and a
    socket to itself: on this machine, for a port of the range that clients are given.
    """
    if connection.family == getattr(socket, "AF_UNIX", None):
        return False
    try:
        return bool(connection.getsockname() == connection.getpeername())
    except OSError:
        return False  # it is gone already: whoever asks something will see
