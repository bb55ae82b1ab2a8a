"""Call a WSGI app as a server does."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

PATIENCE = 10.0
"""Seconds after which something that should have happened long ago fails the test."""


def environ(path: str = "/", *, method: str = "GET", root: str = "", **more: Any) -> dict[str, Any]:
    """Return the environ of a request."""
    return {
        "REQUEST_METHOD": method,
        "SCRIPT_NAME": root,
        "PATH_INFO": path,
        "QUERY_STRING": "",
        "SERVER_NAME": "example.org",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(),
        "wsgi.multithread": True,
        **more,
    }


@dataclass
class Response:
    """What the server got."""

    status: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list)
    starts: list[tuple[Any, ...]] = field(default_factory=list)
    written: list[bytes] = field(default_factory=list)
    body: Any = None

    def start(self, *call: Any) -> Callable[[bytes], object]:
        """Be the server's ``start_response``."""
        self.starts.append(call)
        self.status = int(call[0][:3])
        self.headers = call[1]
        return self.written.append

    def read(self) -> bytes:
        """Iterate to the end and close, as a server does."""
        try:
            return b"".join(self.written) + b"".join(self.body)
        finally:
            getattr(self.body, "close", bool)()


def begin(app: Any, path: str = "/", /, **facts: Any) -> Response:
    """Call ``app`` and return before the body is read."""
    response = Response()
    response.body = app(environ(path, **facts), response.start)
    return response


def call(app: Any, path: str = "/", /, **facts: Any) -> tuple[int, bytes]:
    """Send one request through ``app``; return status and body."""
    response = begin(app, path, **facts)
    body = response.read()
    return response.status, body


def until(condition: Callable[[], object]) -> None:
    """Wait until ``condition`` holds."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def hello(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    """Answer at once."""
    start_response("200 OK", [])
    return [b"ok"]


def aside(app: Any) -> Any:
    """Return ``app`` behind a middleware that does nothing, but stands between two guards."""

    def middleware(environ: dict[str, Any], start_response: Any) -> Any:
        return app(environ, start_response)

    return middleware
