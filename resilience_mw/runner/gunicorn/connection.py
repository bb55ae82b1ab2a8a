"""A connection of the gthread worker, which is read by the event loop until a head is complete."""

from __future__ import annotations

import contextlib
import socket
import time
from typing import TYPE_CHECKING, Any

import gunicorn.http
from gunicorn.workers.gthread import TConn

from ...signals.tcp import tcp_age

if TYPE_CHECKING:
    from .worker_gthread import ThreadMixin

READ_SIZE = 65_536

LONGEST_HEAD = 65_536
"""Bytes after which Gunicorn's parser may say what is wrong with the head."""

END = b"\r\n\r\n"


class Connection(TConn):  # type: ignore[misc]
    """A client's connection.

    Attributes:
        timeout: when the loop gives it up (monotonic seconds).
        head: what has been read of a request before a thread takes it over.
        arrived: when the first byte of that arrived.
    """

    timeout: float
    parser: Any

    def __init__(self, worker: ThreadMixin, sock: Any, client: Any, server: Any) -> None:
        super().__init__(worker.cfg, sock, client, server)
        self.worker = worker
        self.head = bytearray()
        self.arrived = 0.0

    def read(self) -> bool | None:
        """Read on, without waiting; True = a thread can take over, None = the client has left."""
        try:
            data = self.sock.recv(READ_SIZE)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            return None
        if not data:
            return None
        if not self.head:
            self.arrived = time.monotonic() - (tcp_age(self.sock) or 0.0)
        start = max(0, len(self.head) - len(END) + 1)
        self.head += data
        return self.head.find(END, start) >= 0 or len(self.head) > LONGEST_HEAD

    def hand_over(self) -> None:
        """Give what has been read to the parser, so that a thread never waits for a head."""
        if self.parser is None:
            self.parser = gunicorn.http.get_parser(self.cfg, self.sock, self.client)
        self.parser.unreader.feed(bytes(self.head), self.arrived)
        self.head.clear()

    def close(self, graceful: bool = False) -> None:
        """Close it; gracefully, in the loop's own time instead of blocking the loop for it."""
        if graceful:
            self.worker.linger(self)
        else:
            super().close()

    def end_sending(self) -> bool:
        """Tell the client that nothing more will come; returns whether it is still there."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)
            self.sock.setblocking(False)
            return True
        return False

    def discard(self) -> bool:
        """Throw away what the client still sends; returns whether more may come."""
        try:
            return bool(self.sock.recv(READ_SIZE))
        except (BlockingIOError, InterruptedError):
            return True
        except OSError:
            return False
