"""Where load may go: loopback, and nowhere else."""

from __future__ import annotations

import ipaddress
import itertools
import socket
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

# Ephemeral ports are counted per pair of addresses: 16 source addresses give 16 times as many.
SOURCES = 16


class TargetError(ValueError):
    """The URL cannot be a target: not plain HTTP, no port, or not on this machine."""


@dataclass(frozen=True, slots=True)
class Target:
    """One URL on a loopback address, and the request to send to it."""

    host: str
    port: int
    path: str = "/"
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def __post_init__(self) -> None:
        try:
            loopback = ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            loopback = False
        if not loopback:
            raise TargetError(f"target must be a loopback address, got {self.host!r}")

    @classmethod
    def parse(cls, url: str, **options: object) -> Target:
        """Read `http://HOST:PORT/PATH`; `localhost` stands for 127.0.0.1.

        Raises:
            TargetError: the scheme is not `http`, the port is missing, or the host is not a
                loopback address.
        """
        parts = urlsplit(url)
        if parts.scheme != "http":
            raise TargetError(f"target must be an http:// URL, got {url!r}")
        if parts.port is None:
            raise TargetError(f"target must name a port, got {url!r}")
        host = "127.0.0.1" if parts.hostname == "localhost" else parts.hostname or ""
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        return cls(host, parts.port, path, **options)  # type: ignore[arg-type]

    @property
    def family(self) -> socket.AddressFamily:
        """The address family to open sockets in."""
        return socket.AF_INET6 if ":" in self.host else socket.AF_INET

    def request(self, *, keep_alive: bool) -> bytes:
        """Render the request once; every connection sends the same bytes."""
        lines = [f"{self.method} {self.path} HTTP/1.1", f"Host: {self.host}:{self.port}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        if self.body:
            lines.append(f"Content-Length: {len(self.body)}")
        if not keep_alive:
            lines.append("Connection: close")
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + self.body

    def sources(self) -> Iterator[str | None]:
        """Yield source addresses in turn, for ever; `None` leaves the choice to the system.

        Only Linux owns the whole of 127.0.0.0/8 without further set-up.
        """
        if self.family is socket.AF_INET6 or sys.platform != "linux":
            return itertools.repeat(None)
        return itertools.cycle([f"127.0.0.{last}" for last in range(1, SOURCES + 1)])
