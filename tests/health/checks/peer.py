"""A peer whose every byte the test decides."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self

Behaviour = bytes | Callable[[socket.socket, bytes], None]
"""What to answer, or what to do with the connection and the request's head."""

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def status(code: int, *headers: str) -> bytes:
    """Return a whole, empty response."""
    lines = [f"HTTP/1.1 {code} Whatever", *headers, "Content-Length: 0", "", ""]
    return "\r\n".join(lines).encode()


class Peer:
    """A server in a thread for each connection, which reads one head and then behaves.

    Args:
        behaviour: see `Behaviour`; may be replaced at any time.
        path: listen on a Unix socket there, instead of a loopback port.
        host: the loopback address.

    Attributes:
        heads: what was asked, a request each; one connection each, as nobody may send two.
    """

    def __init__(
        self, behaviour: Behaviour = OK, *, path: Path | None = None, host: str = "127.0.0.1"
    ) -> None:
        self.behaviour = behaviour
        self.heads: list[bytes] = []
        self.accepted = 0
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.socket(socket.AF_UNIX if path else family)
        self._listener.bind(str(path) if path else (host, 0))
        self._listener.listen()
        self.port = 0 if path else int(self._listener.getsockname()[1])
        self.address = f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._open: list[socket.socket] = []
        self._threads[0].start()

    def url(self, path: str = "/status") -> str:
        """Return a URL here."""
        return f"http://{self.address}{path}"

    def close(self) -> None:
        """Hang up on everybody, and wait for the threads."""
        with contextlib.suppress(OSError):
            # Closing alone does not wake a thread that waits in accept().
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.accepted += 1
            self._open.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                received = connection.recv(4096)
                if not received:
                    return
                head += received
            self.heads.append(head)
            if callable(self.behaviour):
                self.behaviour(connection, head)
            else:
                connection.sendall(self.behaviour)
