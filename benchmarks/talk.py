"""A client that does what no library would: stalls, drips, leaves halves, and looks at the clock.

with Client(server) as client:
    client.send(b"GET / HTTP/1.1\\r\\nHo")
    answer = client.read(timeout=5)
    print(answer.status, answer.ended, client.age)
"""

from __future__ import annotations

import contextlib
import re
import socket
import time
from dataclasses import dataclass
from typing import Literal, Protocol, Self

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\nconnection: *close\r\n", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)

Ended = Literal["complete", "closed", "reset", "timeout"]


class Address(Protocol):
    """A server, as far as a client needs to know it."""

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int: ...


@dataclass(frozen=True)
class Answer:
    """What came back.

    Attributes:
        status: the code; 0 = there was no response.
        ended: a `complete` response, or why there is none or only a part: the server `closed` or
            `reset` the connection, or nothing more came in time.
        says_close: whether it announces that the connection is closed.
        body: as it came over the wire, in chunks where it was chunked.
        at: seconds since the connection was opened.
    """

    status: int
    ended: Ended
    says_close: bool
    body: bytes
    at: float

    @property
    def ok(self) -> bool:
        """Whether it is a whole 200."""
        return self.status == 200 and self.ended == "complete"


class Client:
    """One connection; a context manager.

    Raises:
        OSError: it cannot be opened (`ConnectionRefusedError`: nobody listens).
    """

    def __init__(self, server: Address, timeout: float = 5.0) -> None:
        self.opened = time.monotonic()
        self.socket = socket.create_connection((server.host, server.port), timeout=timeout)
        self._left = b""

    @property
    def age(self) -> float:
        """Seconds since it was opened."""
        return time.monotonic() - self.opened

    def send(self, data: bytes) -> bool:
        """Send something; returns False if the server has closed the connection."""
        try:
            self.socket.sendall(data)
        except OSError:
            return False
        return True

    def ask(self, path: str = "/", head: str = "", method: str = "GET") -> bool:
        """Send a whole request without a body; `head` may hold further lines, each ended."""
        return self.send(f"{method} {path} HTTP/1.1\r\nHost: test\r\n{head}\r\n".encode())

    def get(self, path: str = "/", timeout: float = 10.0) -> Answer:
        """Ask, and read the answer."""
        self.ask(path)
        return self.read(timeout)

    def read(self, timeout: float = 10.0) -> Answer:
        """Read a response, waiting for its end until `timeout` seconds have passed."""
        until = time.monotonic() + timeout
        data, self._left = self._left, b""
        ended: Ended = "timeout"
        while (end := _end(data)) is None:
            more = self._receive(until - time.monotonic())
            if isinstance(more, str):
                ended = more
                break
            data += more
        else:
            ended = "complete"
            data, self._left = data[:end], data[end:]
        head, _, body = data.partition(b"\r\n\r\n")
        status = int(head[9:12]) if head.startswith(b"HTTP/1.1 ") else 0
        if status and ended == "closed" and not _sized(head):
            ended = "complete"  # the end of the connection is the end of the response
        return Answer(status, ended, bool(_CLOSE.search(head + b"\r\n")), body, self.age)

    def wait_closed(self, timeout: float = 10.0) -> float | None:
        """Return the age at which the server closes the connection; None = not in time."""
        until = time.monotonic() + timeout
        while True:
            more = self._receive(until - time.monotonic())
            if isinstance(more, str):
                return None if more == "timeout" else self.age

    def _receive(self, timeout: float) -> bytes | Ended:
        if timeout <= 0:
            return "timeout"
        self.socket.settimeout(timeout)
        try:
            return self.socket.recv(65_536) or "closed"
        except TimeoutError:
            return "timeout"
        except OSError:
            return "reset"

    def close(self) -> None:
        """Close it."""
        with contextlib.suppress(OSError):
            self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def get(server: Address, path: str = "/", timeout: float = 10.0) -> Answer:
    """Ask on a connection of its own."""
    with Client(server) as client:
        return client.get(path, timeout)


def _end(data: bytes) -> int | None:
    """Where the first response in `data` ends; None = not known yet."""
    head, found, body = data.partition(b"\r\n\r\n")
    if not found:
        return None
    length = _LENGTH.search(head)
    if length is not None:
        size = int(length[1])
        return len(head) + 4 + size if len(body) >= size else None
    if _CHUNKED.search(head) is not None and (last := body.find(b"0\r\n\r\n")) >= 0:
        return len(head) + 4 + last + 5
    return None


def _sized(head: bytes) -> bool:
    return _LENGTH.search(head) is not None or _CHUNKED.search(head) is not None
