"""A client that does what no library does: stops in the middle of a head, or looks for the end."""

from __future__ import annotations

import contextlib
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from functools import partial
from types import TracebackType
from typing import NamedTuple, Self

from benchmarks.process import Server, free_port
from benchmarks.servers import start

APPS = "tests.runner_uvicorn.apps"

COMBINATIONS = {
    f"{http}-{loop}": {"http": http, "loop": loop}
    for http in ("httptools", "h11")
    for loop in ("asyncio", "uvloop")
}

PATIENCE = 15.0
"""Seconds without a byte after which a test has failed."""

GET = b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n"


def command(*flags: str, app: str = "app", http: str = "auto", loop: str = "auto") -> list[str]:
    """Return the command line of the runner, without a port."""
    given = ["--server", "uvicorn", "--http", http, "--loop", loop, *flags]
    return [
        sys.executable,
        "-m",
        "resilience_mw",
        "run",
        app if ":" in app else f"{APPS}:{app}",
        *given,
    ]


def launch(
    *flags: str,
    app: str = "app",
    http: str = "auto",
    loop: str = "auto",
    env: Mapping[str, str] | None = None,
) -> Server:
    """Start the runner and wait until it serves."""
    line = command(*flags, app=app, http=http, loop=loop)
    return start(partial(_with_port, line), env=env)


def begin(
    *flags: str,
    app: str = "app",
    http: str = "auto",
    loop: str = "auto",
    env: Mapping[str, str] | None = None,
) -> Server:
    """Start the runner without waiting for it."""
    port = free_port()
    line = command(*flags, app=app, http=http, loop=loop)
    return Server(_with_port(line, port), port, env=env)


def _with_port(line: list[str], port: int) -> list[str]:
    return [*line, "--port", str(port)]


def times(
    *, delay: float = 0.0, shutdown: float = 3.0, headers: float = 5.0, keep_alive: float = 5.0
) -> list[str]:
    """Return flags for short times."""
    return [
        f"--runner-drain-delay={delay}",
        f"--runner-shutdown-timeout={shutdown}",
        f"--runner-headers-timeout={headers}",
        f"--runner-keep-alive-timeout={keep_alive}",
    ]


class Response(NamedTuple):
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def closes(self) -> bool:
        """Whether the server says that the connection ends here."""
        return self.headers.get("connection") == "close"


class Client:
    """One connection."""

    def __init__(self, server: Server) -> None:
        self.socket = socket.create_connection((server.host, server.port), timeout=PATIENCE)
        self.file = self.socket.makefile("rb")

    def send(self, data: bytes) -> None:
        """Send these bytes."""
        self.socket.sendall(data)

    def ask(self, path: str = "/") -> None:
        """Send a request."""
        self.send(GET % path.encode())

    def get(self, path: str = "/") -> Response:
        """Send a request and read the response."""
        self.ask(path)
        return self.read()

    def read(self, *, head: bool = False) -> Response:
        """Read a response; `head` = without a body, whatever it announces."""
        line = self.file.readline()
        assert line, "closed without a response"
        headers: dict[str, str] = {}
        while (field := self.file.readline()) != b"\r\n":
            assert field, "closed within a head"
            name, _, value = field.decode().partition(":")
            headers[name.lower()] = value.strip()
        return Response(int(line.split()[1]), headers, b"" if head else self._body(headers))

    def _body(self, headers: Mapping[str, str]) -> bytes:
        if headers.get("transfer-encoding") != "chunked":
            return self.file.read(int(headers["content-length"]))
        body = b""
        while size := int(self.file.readline(), 16):
            body += self.file.read(size)
            self.file.readline()
        self.file.readline()
        return body

    def ended(self, within: float) -> bool:
        """Whether the server closes the connection in time, without a word."""
        self.socket.settimeout(within)
        try:
            return self.socket.recv(1) == b""
        except TimeoutError:
            return False
        except ConnectionResetError:
            return True
        finally:
            self.socket.settimeout(PATIENCE)

    def close(self) -> None:
        """Close it."""
        self.file.close()
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def get(server: Server, path: str = "/") -> Response:
    """Send one request on a connection of its own."""
    with Client(server) as client:
        return client.get(path)


def refused(server: Server) -> bool:
    """Whether nobody listens."""
    try:
        Client(server).close()
    except ConnectionRefusedError:
        return True
    return False


def wait_refused(server: Server, within: float) -> float:
    """Wait until new connections are refused, and return how long that took."""
    began = time.monotonic()
    while not refused(server):
        assert time.monotonic() - began < within, "still accepting"
        time.sleep(0.02)
    return time.monotonic() - began


@contextlib.contextmanager
def timed(least: float, most: float) -> Iterator[None]:
    """Check how many seconds something takes; `most` is generous, for a busy machine."""
    began = time.monotonic()
    yield
    took = time.monotonic() - began
    assert least <= took <= most, f"took {took:.2f} s"
