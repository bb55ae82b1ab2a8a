"""An HTTP request in WSGI terms, and how a `Reply` is sent."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable
from functools import lru_cache
from http.client import responses
from typing import Any

from werkzeug.wsgi import get_path_info

from ..core.exchange import Exchange, Reply
from ..signals.peers import certain_peer, peer_address
from ..signals.reach import environ_socket
from ..types import Environ, StartResponse


@lru_cache(maxsize=256)
def _in_environ(name: str) -> str:
    """Return the key under which CGI, and so WSGI, has a header."""
    key = name.upper().replace("-", "_")
    return key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"


class WSGIExchange(Exchange):
    """One WSGI request."""

    environ: Environ
    server_start_response: StartResponse

    @property
    def path(self) -> str:
        """Path of the request below the mount point (``SCRIPT_NAME``), decoded."""
        path: str = self.environ.get("PATH_INFO", "")
        return path if path.isascii() else get_path_info(self.environ)

    @property
    def raw_path(self) -> str | None:
        """The path as the client wrote it, with its escapes; ``None`` where the server hides it."""
        environ = self.environ
        # Gunicorn's name, then everybody else's.
        raw: str | None = environ.get("RAW_URI", environ.get("REQUEST_URI"))
        return None if raw is None else raw.partition("?")[0]

    @property
    def method(self) -> str:
        """Request method in upper case."""
        method: str = self.environ["REQUEST_METHOD"]
        return method

    @property
    def query(self) -> str:
        """What stands after the question mark, as it was sent."""
        query: str = self.environ.get("QUERY_STRING", "")
        return query

    @property
    def peer(self) -> str | None:
        """Address of whoever is connected, from the socket itself where it can be reached."""
        return peer_address(environ_socket(self.environ), self.client)

    @property
    def certain_peer(self) -> str | None:
        """`peer`, unless a header of the client's may have named it: then no address at all."""
        return certain_peer(environ_socket(self.environ), self.client, self.header)

    @property
    def client(self) -> str | None:
        """Address of the client as the server tells it: a proxy's word may be in it."""
        return self.environ.get("REMOTE_ADDR") or None

    def header(self, name: str) -> str | None:
        """Return a request header; the server has joined several of the same name with commas."""
        return self.environ.get(_in_environ(name))

    def start_response(
        self, status: str, headers: list[Any], exc_info: Any = None
    ) -> Callable[..., Any]:
        """Note the start of the response and pass it on, ``exc_info`` only if it was given."""
        self.status = int(status[:3])
        self.answered_at = time.monotonic()
        if exc_info is None:
            return self.server_start_response(status, headers)
        return self.server_start_response(status, headers, exc_info)


def answer(reply: Reply, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    """Answer with ``reply``, without its body to HEAD.

    ``reply.close`` is not said here: hop-by-hop headers belong to the server in WSGI, and some
    servers turn a response that has one into a 500.
    """
    start_response(status_line(reply.status), list(reply.headers))
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [reply.body]


def status_line(status: int) -> str:
    """Return a status as WSGI has it: with words, also where nobody has registered any."""
    return f"{status} {responses.get(status, 'Unknown')}"


def client_left(environ: Environ) -> bool:
    """Whether the client is known to have closed its connection; never waits to find out.

    Known on Gunicorn, whose socket is in the environ, and on Waitress, which offers a function.
    """
    disconnected = environ.get("waitress.client_disconnected")
    if disconnected is not None:
        return bool(disconnected())
    connection = environ.get("gunicorn.socket")
    if connection is None:
        return False
    try:
        if connection.gettimeout():
            return False  # with a timeout set, a read waits for it whatever the flags say
        # A gevent socket waits for something to read; the one inside it does as it is told.
        raw: Any = getattr(connection, "_sock", connection)
        return not raw.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except (BlockingIOError, InterruptedError, ValueError):
        return False  # nothing to read: still there; ValueError: TLS knows no flags
    except OSError:
        return True


def exchange_of(environ: Environ) -> WSGIExchange:
    """Return a request as it is seen by whoever only looks at it."""
    exchange = WSGIExchange()
    exchange.environ = environ
    return exchange
