"""Bind a port, and accept what comes there: several connections in a turn of the loop.

uvloop accepts one a turn. When turns are long, new clients would wait in the kernel's queue until
they give up, health probes among them, however quickly each of them could be answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import ssl
import stat
from collections.abc import Callable
from typing import Any

logger = logging.getLogger("resilience_mw")

MOST = 128
"""Connections accepted in one turn. More would let accepting starve those who are in already."""

PAUSE = 1.0
"""Seconds without accepting, once the process has run out of descriptors."""

ENOUGH = 10_000
"""Connections taken out of the kernel's queue before a listener is closed, at most."""


def bind(host: str, port: int, *, uds: str | None = None, fd: int | None = None) -> socket.socket:
    """Return a socket that is bound but does not listen yet.

    Args:
        host: a name or an address, IPv4 or IPv6; empty = every IPv4 interface.
        port: 0 = any that is free.
        uds: the path of a Unix socket instead.
        fd: the descriptor of a socket that somebody else has bound, instead.

    Raises:
        OSError: the address is in use, unknown or not allowed.
    """
    if fd is not None:
        return socket.socket(fileno=os.dup(fd))
    if uds is not None:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        address: Any = uds
        _remove_stale(uds)
    else:
        flags = socket.AI_PASSIVE
        family, kind, number, _, address = socket.getaddrinfo(
            host or "0.0.0.0", port, type=socket.SOCK_STREAM, flags=flags
        )[0]
        sock = socket.socket(family, kind, number)
        if os.name == "posix":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind(address)
        if uds is not None:
            os.chmod(uds, 0o666)
    except BaseException:
        sock.close()
        raise
    return sock


def _remove_stale(path: str) -> None:
    """Remove the socket that an earlier run left; anything else is somebody's file."""
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISSOCK(os.stat(path).st_mode):
            os.unlink(path)


def address_of(sock: socket.socket, tls: bool) -> str:
    """Return where a socket is reached, as people write it."""
    address = sock.getsockname()
    if not isinstance(address, tuple):
        return f"unix:{address}"
    host = f"[{address[0]}]" if ":" in address[0] else address[0]
    return f"{'https' if tls else 'http'}://{host}:{address[1]}"


def port_of(sock: socket.socket) -> int:
    """Return the port of a socket; 0 = it has none."""
    address = sock.getsockname()
    return int(address[1]) if isinstance(address, tuple) else 0


class Acceptor:
    """Accepts the connections of one listening socket, which it owns.

    Args:
        sock: bound already.
        make: makes the protocol of a connection.
        tls: how to speak TLS; ``None`` = not at all.
        handshake: seconds for the handshake of TLS.
        backlog: connections that may wait in the kernel's queue.
    """

    def __init__(
        self,
        sock: socket.socket,
        make: Callable[[], asyncio.Protocol],
        *,
        tls: ssl.SSLContext | None = None,
        handshake: float = 60.0,
        backlog: int = 2048,
    ) -> None:
        self._sock = sock
        self._make = make
        self._tls: dict[str, Any] = {}
        if tls is not None:
            self._tls = {"ssl": tls, "ssl_handshake_timeout": handshake}
        self._loop = asyncio.get_running_loop()
        self._greeting: set[asyncio.Task[None]] = set()
        self._open = True
        sock.setblocking(False)
        sock.listen(backlog)
        self._start()

    def close(self) -> None:
        """Refuse whoever comes from now on; those who are in the kernel's queue are let in."""
        if not self._open:
            return
        self._open = False
        self._loop.remove_reader(self._sock.fileno())
        self._accept(ENOUGH)
        self._sock.close()

    async def settled(self, within: float) -> None:
        """Wait until every accepted connection has its protocol, for so many seconds at most.

        Whoever never begins the handshake of TLS must not hold up a stop.
        """
        if self._greeting:
            await asyncio.wait(self._greeting, timeout=within)

    def _start(self) -> None:
        if self._open:
            self._loop.add_reader(self._sock.fileno(), self._accept, MOST)

    def _accept(self, most: int) -> None:
        for _ in range(most):
            try:
                connection, _ = self._sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                # Most likely no descriptor is left. Those who are served give some back; the loop
                # would meanwhile be told again and again that somebody waits.
                logger.error("cannot accept connections, pausing for %g s: %s", PAUSE, error)
                if self._open:
                    self._loop.remove_reader(self._sock.fileno())
                    self._loop.call_later(PAUSE, self._start)
                return
            connection.setblocking(False)
            task = self._loop.create_task(self._greet(connection))
            self._greeting.add(task)
            task.add_done_callback(self._greeting.discard)

    async def _greet(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._make, connection, **self._tls)
        except (OSError, ssl.SSLError) as error:
            logger.debug("a connection was lost before it was set up: %s", error)
            connection.close()
