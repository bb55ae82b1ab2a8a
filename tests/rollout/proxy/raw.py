"""An upstream that says exactly what a test wants, byte by byte."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

Talk = Callable[[socket.socket, bytes], None]


def says(answer: bytes, *, then_close: bool = True) -> Talk:
    """Answer each request with ``answer``."""

    def talk(connection: socket.socket, head: bytes) -> None:
        connection.sendall(answer)
        if then_close:
            connection.shutdown(socket.SHUT_WR)

    return talk


class RawUpstream:
    """A listening socket whose connections do as they are told; a context manager.

    Args:
        talk: called with the connection and each request's head.
        host: the address to listen at.
    """

    def __init__(self, talk: Talk, host: str = "127.0.0.1") -> None:
        self._talk = talk
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family)
        self._connections: list[socket.socket] = []
        self.heads: list[bytes] = []
        self.closed = 0
        """Connections that the other side has closed."""

    @property
    def url(self) -> str:
        """What a proxy is given."""
        host, port = self._listener.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    @property
    def accepted(self) -> int:
        """How many connections there were."""
        return len(self._connections)

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._connections.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        data = b""
        with contextlib.suppress(OSError):
            while True:
                while b"\r\n\r\n" not in data:
                    more = connection.recv(65_536)
                    if not more:
                        self.closed += 1
                        return
                    data += more
                head, _, data = data.partition(b"\r\n\r\n")
                self.heads.append(head)
                self._talk(connection, head)
