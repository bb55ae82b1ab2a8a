"""Clients that leave in the middle of their requests, in real servers."""

from __future__ import annotations

import http.client
import json
import socket
import time
from functools import partial
from typing import Any

import pytest

from tests.servers import Launcher, Server, gunicorn, hypercorn, uvicorn

APPS = "tests.rollout.core.leaving_apps:"
SERVERS: dict[str, tuple[Launcher, str]] = {
    "uvicorn-httptools": (partial(uvicorn, http="httptools", loop="uvloop"), "asgi_app"),
    "uvicorn-h11": (partial(uvicorn, http="h11", loop="asyncio"), "asgi_app"),
    "hypercorn": (partial(hypercorn, worker="asyncio"), "asgi_app"),
    "gunicorn-gthread": (partial(gunicorn, worker="gthread"), "wsgi_app"),
}


def counts(server: Server) -> list[int]:
    """Ask for requests and errors of the new stack."""
    client = http.client.HTTPConnection(server.host, server.port, timeout=20)
    try:
        client.request("GET", "/")
        found: list[int] = json.loads(client.getresponse().read())
    finally:
        client.close()
    return found


def leave(server: Server, path: str) -> None:
    """Send half of a body."""
    with socket.create_connection((server.host, server.port), timeout=20) as client:
        head = f"POST {path} HTTP/1.1\r\nHost: example.org\r\nContent-Length: 10\r\n\r\nhalf"
        client.sendall(head.encode())
        time.sleep(0.1)


def until(server: Server, expected: list[int]) -> None:
    """Wait until so much has been counted."""
    deadline = time.monotonic() + 20
    while counts(server) != expected:
        assert time.monotonic() < deadline, counts(server)
        time.sleep(0.05)


@pytest.mark.parametrize(("launch", "app"), SERVERS.values(), ids=SERVERS)
def test_what_a_leaving_client_causes_is_no_error(launch: Launcher, app: str, serve: Any):
    """Neither an exception nor a 500; but an app that does not answer is one."""
    server = serve(launch(APPS + app))
    for path in ("/new/raise", "/new/500"):
        for _ in range(3):
            leave(server, path)
    until(server, [6, 0])
    with socket.create_connection((server.host, server.port), timeout=20) as client:
        client.sendall(b"GET /new/silent HTTP/1.1\r\nHost: example.org\r\n\r\n")
        client.recv(100)
        until(server, [7, 1])
