"""A client that sends a request and reads the answer at another time."""

from __future__ import annotations

import json
import re
import socket
from typing import Any


class Client:
    """One keep-alive connection, opened when first needed.

    Args:
        address: (host, port), or the path of a Unix socket.
    """

    def __init__(self, address: tuple[str, int] | str) -> None:
        self._address = address
        self._sock: socket.socket | None = None

    def open(self) -> socket.socket:
        """Connect, unless connected already."""
        if self._sock is None:
            family = socket.AF_UNIX if isinstance(self._address, str) else socket.AF_INET
            self._sock = socket.socket(family)
            self._sock.settimeout(20)
            self._sock.connect(self._address)
        return self._sock

    def send(self, path: str, *headers: str) -> None:
        """Send a request and return at once."""
        head = (f"GET {path} HTTP/1.1", "Host: test", "Origin: http://test", *headers, "", "")
        self.open().sendall("\r\n".join(head).encode())

    def receive(self) -> bytes:
        """Return the body of the next answer; the connection closes if the server says so."""
        sock, data = self.open(), b""
        while b"\r\n\r\n" not in data:
            data += self._more(sock)
        head, _, body = data.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
        assert length, head
        while len(body) < int(length[1]):
            body += self._more(sock)
        if re.search(rb"connection: *close", head, re.IGNORECASE):
            self.close()
        return body

    def ask(self, path: str, *headers: str) -> dict[str, Any]:
        """Send a request and return the answer."""
        self.send(path, *headers)
        return self.answer()

    def answer(self) -> dict[str, Any]:
        """Return the next answer as an object."""
        report: dict[str, Any] = json.loads(self.receive())
        return report

    def close(self) -> None:
        """Close the connection, if it is open."""
        if self._sock is not None:
            self._sock.close()
            self._sock = None

    def _more(self, sock: socket.socket) -> bytes:
        data = sock.recv(65536)
        assert data, "the server closed the connection"
        return data
