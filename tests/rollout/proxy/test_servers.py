"""The proxy in real servers: what a client on a socket gets, and what the process holds."""

from __future__ import annotations

import os
import re
import socket
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.servers import Launcher, Server, granian, gunicorn, hypercorn, uvicorn, waitress

from .raw import RawUpstream, says

FRONTS = "tests.rollout.proxy.fronts:"
MEBIBYTE = 1 << 20

STREAMING: dict[str, tuple[Launcher, str]] = {
    "uvicorn-httptools": (partial(uvicorn, http="httptools", loop="uvloop"), "asgi"),
    "uvicorn-h11": (partial(uvicorn, http="h11", loop="asyncio"), "asgi"),
    "gunicorn-sync": (partial(gunicorn, worker="sync"), "wsgi"),
    "gunicorn-gthread": (partial(gunicorn, worker="gthread"), "wsgi"),
}
SERVERS: dict[str, tuple[Launcher, str]] = {
    **STREAMING,
    "hypercorn": (partial(hypercorn, worker="asyncio"), "asgi"),
    "granian-asgi": (partial(granian, interface="asgi"), "asgi"),
    "gunicorn-asgi": (partial(gunicorn, worker="asgi"), "asgi"),
    "gunicorn-gevent": (partial(gunicorn, worker="gevent"), "wsgi"),
    "granian-wsgi": (partial(granian, interface="wsgi"), "application"),
    "waitress": (waitress, "wsgi"),
}

KEEPING = {name: SERVERS[name] for name in SERVERS if "asgi" in name} | {
    name: SERVERS[name] for name in ("uvicorn-httptools", "hypercorn", "gunicorn-gthread")
}
LOOKS_AHEAD = partial(waitress, args=["--channel-request-lookahead=1"])
TELLING: dict[str, tuple[Launcher, str]] = {
    **{name: front for name, front in SERVERS.items() if name not in ("granian-wsgi", "waitress")},
    "waitress": (LOOKS_AHEAD, "wsgi"),
}
"""Those that tell while a request runs that its client has left."""


def talk(server: Server, request: bytes, *, finish: bool = False) -> bytes:
    """Send bytes, and return all that comes until the server closes."""
    with socket.create_connection((server.host, server.port), timeout=20) as client:
        client.sendall(request)
        if finish:
            client.shutdown(socket.SHUT_WR)
        return b"".join(received(client))


def received(client: socket.socket) -> Iterator[bytes]:
    """Yield what comes until the other side closes."""
    while True:
        try:
            data = client.recv(MEBIBYTE)
        except ConnectionResetError:
            return
        if not data:
            return
        yield data


def head(method: str, path: str, *fields: str) -> bytes:
    """Return the head of a request after which the server is to close."""
    lines = (f"{method} {path} HTTP/1.1", "Host: example.org", "Connection: close", *fields)
    return "\r\n".join((*lines, "", "")).encode()


@pytest.mark.parametrize(("launch", "app"), SERVERS.values(), ids=SERVERS)
def test_every_server_passes_requests_on(launch, app, serve, upstream):
    """There and back, with a body by length and in chunks, and the path as it was written."""
    server = serve(launch(FRONTS + app, env={"UPSTREAM": upstream.url}))
    answer = talk(server, head("POST", "/a%20b//%2e?q=%2F", "Content-Length: 5") + b"hello")
    assert answer.startswith(b"HTTP/1.1 200")
    # Where the server does not tell how a path was written, it is written anew.
    path = b"/a%20b//." if app == "application" else b"/a%20b//%2e"
    assert b'"path": "%s", "query": "q=%%2F"' % path in answer
    assert b'["x-forwarded-for", "127.0.0.1"]' in answer
    assert b'"body": 5' in answer
    assert len(re.findall(rb"(?im)^date:", answer)) == 1
    chunks = head("POST", "/", "Transfer-Encoding: chunked") + b"5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n"
    answer = talk(server, chunks)
    # Where the server leaves the end of the body to itself, we cannot know it.
    assert b'"body": 6' in answer or (app == "application" and b" 411 " in answer)
    answer = talk(server, head("GET", "/download?size=300000"))
    assert answer.count(b"x") >= 300_000


@pytest.mark.parametrize(("launch", "app"), STREAMING.values(), ids=STREAMING)
def test_a_client_that_asks_before_it_sends_is_told_to(launch, app, serve, upstream):
    """The server in front answers `Expect`; the upstream never sees it."""
    server = serve(launch(FRONTS + app, env={"UPSTREAM": upstream.url}))
    with socket.create_connection((server.host, server.port), timeout=20) as client:
        client.sendall(head("POST", "/echo", "Content-Length: 5", "Expect: 100-continue"))
        assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"hello")
        answer = b"".join(received(client))
    assert answer.startswith(b"HTTP/1.1 200")
    assert b'"body": 5' in answer
    assert b'"expect"' not in answer


@pytest.mark.parametrize(("launch", "app"), KEEPING.values(), ids=KEEPING)
def test_requests_that_follow_each_other_share_a_connection(launch, app, serve):
    """Though some servers report that the client has left when its response is complete."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    with RawUpstream(says(answer, then_close=False)) as raw:
        server = serve(launch(FRONTS + app, env={"UPSTREAM": raw.url}))
        begun = raw.accepted
        for _ in range(5):
            assert talk(server, head("GET", "/")).endswith((b"ok", b"2\r\nok\r\n0\r\n\r\n"))
        assert raw.accepted <= begun + 1


SMUGGLED = {
    "CL.TE": head("POST", "/", "Content-Length: 35", "Transfer-Encoding: chunked")
    + b"0\r\n\r\nGET /smuggled HTTP/1.1\r\nA: b",
    "TE.TE": head("POST", "/", "Transfer-Encoding: chunked", "Transfer-Encoding: identity")
    + b"0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n",
    "TE with a blank": head("POST", "/", "Transfer-Encoding : chunked", "Content-Length: 4")
    + b"0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n",
    "TE behind a tab": head("POST", "/", "Transfer-Encoding:\tchunked", "Content-Length: 4")
    + b"0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n",
    "TE folded": head("POST", "/", "Transfer-Encoding:\r\n chunked", "Content-Length: 4")
    + b"0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n",
    "two lengths": head("POST", "/", "Content-Length: 0", "Content-Length: 35")
    + b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
    "a bare line feed": head("GET", "/", "A: b\nGET /smuggled HTTP/1.1"),
    "in the line": head("GET", "/ HTTP/1.1\r\nHost: a\r\n\r\nGET /smuggled", "A: b"),
}


@pytest.mark.parametrize(("launch", "app"), STREAMING.values(), ids=STREAMING)
def test_nothing_is_smuggled_through(launch, app, serve):
    """Whatever the server makes of it, no connection to the upstream has two meanings."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    with RawUpstream(says(answer, then_close=False)) as raw:
        server = serve(launch(FRONTS + app, env={"UPSTREAM": raw.url}))
        for name, request in SMUGGLED.items():
            before = len(raw.heads)
            talk(server, request, finish=True)
            # One that asks for it in the open, after an end that nobody doubts, is no smuggler.
            allowed = {b"POST /", b"GET /"} | (
                {b"GET /smuggled"} if name == "in the line" else set()
            )
            for seen in raw.heads[before:]:
                assert seen.split(b" HTTP/1.1\r\n")[0] in allowed, (name, seen)
                assert seen.count(b"HTTP/1.1") == 1, (name, seen)


@pytest.mark.parametrize(("launch", "app"), TELLING.values(), ids=TELLING)
def test_a_client_that_hangs_up_ends_the_upstream_call(launch, app, serve, upstream, seen):
    """Before the response has begun, and in the middle of it."""
    server = serve(launch(FRONTS + app, env={"UPSTREAM": upstream.url}))
    for path in ("/hang", "/drip"):
        before = seen(f"left {path}"), seen(f"entered {path}")
        with socket.create_connection((server.host, server.port), timeout=20) as client:
            client.sendall(head("GET", path))
            deadline = time.monotonic() + 10
            while seen(f"entered {path}") == before[1]:
                assert time.monotonic() < deadline
                time.sleep(0.02)
            assert seen(f"left {path}") == before[0]
        deadline = time.monotonic() + 10
        while seen(f"left {path}") == before[0]:
            assert time.monotonic() < deadline, path
            time.sleep(0.02)


def most_memory(server: Server) -> int:
    """Return the most bytes that the server and its workers have held so far."""
    total = 0
    for pid in (server.pid, *(worker.pid for worker in server.workers())):
        status = Path(f"/proc/{pid}/status").read_text()
        total += int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) * 1024
    return total


def download(server: Server, size: int, pause: float = 0.0) -> None:
    """Read a body of so many bytes, after a pause in which it must not pile up."""
    with socket.create_connection((server.host, server.port), timeout=60) as client:
        client.sendall(head("GET", f"/download?size={size}&length"))
        time.sleep(pause)
        assert sum(map(len, received(client))) > size


def upload(server: Server, size: int) -> None:
    """Send a body of so many bytes."""
    chunk = b"x" * MEBIBYTE
    with socket.create_connection((server.host, server.port), timeout=60) as client:
        client.sendall(head("POST", "/upload", f"Content-Length: {size}"))
        for _ in range(size // len(chunk)):
            client.sendall(chunk)
        assert b"".join(received(client)).endswith(str(size).encode())


SIZES = [
    pytest.param(64 * MEBIBYTE, id="64-MiB"),
    pytest.param(
        1024 * MEBIBYTE,
        id="1-GiB",
        marks=pytest.mark.skipif("SLOW" not in os.environ, reason="takes a minute: SLOW=1"),
    ),
]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the kernel keeps no peak")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("launch", "app"), STREAMING.values(), ids=STREAMING)
def test_bodies_pass_in_constant_memory(launch, app, size, serve, upstream):
    """Both ways, and towards a client that does not read for a while."""
    server = serve(launch(FRONTS + app, env={"UPSTREAM": upstream.url}))
    download(server, 2 * MEBIBYTE)
    upload(server, 2 * MEBIBYTE)
    before = most_memory(server)
    download(server, size, pause=0.5)
    upload(server, size)
    assert most_memory(server) - before < 12 * MEBIBYTE


ASGI = {name: launch for name, (launch, app) in STREAMING.items() if app == "asgi"}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the kernel keeps no peak")
@pytest.mark.parametrize("launch", ASGI.values(), ids=ASGI)
def test_both_ways_at_once_in_constant_memory(launch, serve, upstream):
    """What comes back while it is being sent."""
    server = serve(launch(FRONTS + "asgi", env={"UPSTREAM": upstream.url}))
    echo(server, 2)
    before = most_memory(server)
    echo(server, 32)
    assert most_memory(server) - before < 12 * MEBIBYTE


def echo(server: Server, mebibytes: int) -> None:
    """Send so much, and read it back at the same time."""
    size = mebibytes * MEBIBYTE

    def send() -> None:
        for _ in range(mebibytes):
            client.sendall(b"x" * MEBIBYTE)

    with socket.create_connection((server.host, server.port), timeout=60) as client:
        client.sendall(head("POST", "/duplex", f"Content-Length: {size}"))
        sending = threading.Thread(target=send)
        sending.start()
        assert sum(data.count(b"x") for data in received(client)) >= size
        sending.join()
