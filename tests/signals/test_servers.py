"""Every server, unchanged: which source it offers, and that it tells the truth.

A request that arrives while the server is blocked by two others of 0.3 s each has waited.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest

from tests.servers import Launcher, Server, granian, gunicorn, hypercorn, uvicorn, waitress

from .client import Client

APPS = "tests.signals.probe_apps:"

Connect = Callable[..., Client]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Make clients that are closed after the test."""
    with ExitStack() as clients:

        def make(address: Any) -> Client:
            client = Client(address)
            clients.callback(client.close)
            return client

        yield make


def _after_two_blocking_ones(address: Any, connect: Connect) -> tuple[dict[str, Any], float]:
    """Ask on a warm connection, behind two blocking requests; return the report and the time."""
    first, second, third = connect(address), connect(address), connect(address)
    for client in (first, second, third):
        client.ask("/probe")
    first.send("/block")
    time.sleep(0.05)
    second.send("/block")
    time.sleep(0.02)
    sent = time.monotonic()
    third.send("/probe")
    # In this order, because a sync worker waits for its clients to hang up.
    first.receive()
    second.receive()
    report = third.answer()
    return report, time.monotonic() - sent


TCP: dict[str, tuple[Launcher, str, str]] = {
    "uvicorn-h11-asyncio": (partial(uvicorn, http="h11", loop="asyncio"), "bare", "select"),
    "uvicorn-h11-uvloop": (partial(uvicorn, http="h11", loop="uvloop"), "bare", "uv"),
    "uvicorn-httptools-asyncio": (partial(uvicorn, loop="asyncio"), "bare", "select"),
    "uvicorn-httptools-uvloop": (partial(uvicorn, loop="uvloop"), "bare", "uv"),
    "uvicorn-starlette-asyncio": (partial(uvicorn, loop="asyncio"), "starlette", "select"),
    "uvicorn-starlette-uvloop": (partial(uvicorn, loop="uvloop"), "starlette", "uv"),
    "gunicorn-uvicorn-worker": (partial(gunicorn, worker="uvicorn-worker"), "bare", "uv"),
    "gunicorn-asgi": (partial(gunicorn, worker="asgi"), "bare", "uv"),
    "gunicorn-asgi-starlette": (
        partial(gunicorn, worker="asgi", args=["--asgi-loop", "asyncio"]),
        "starlette",
        "select",
    ),
    "hypercorn-asyncio": (partial(hypercorn, worker="asyncio"), "bare", "select"),
    "hypercorn-uvloop-starlette": (partial(hypercorn, worker="uvloop"), "starlette", "uv"),
}


@pytest.mark.parametrize(("launch", "app", "meter"), TCP.values(), ids=TCP)
def test_asgi_servers_lead_to_the_socket(launch, app, meter, serve, connect):
    """The kernel says how long the request has waited, almost all of what the client saw."""
    server: Server = serve(launch(APPS + app))
    address = (server.host, server.port)
    report, took = _after_two_blocking_ones(address, connect)
    assert (report["source"], report["meter"]) == ("tcp", meter)
    assert 0.3 <= report["waited"] <= took + 0.01
    fresh = connect(address).ask("/probe")
    assert 0.0 <= fresh["waited"] < 0.3
    assert fresh["listeners"] == [0]


TURNS: dict[str, tuple[Launcher, str, str]] = {
    "granian-asyncio": (partial(granian, loop="asyncio"), "bare", "select"),
    "granian-uvloop": (partial(granian, loop="uvloop"), "bare", "uv"),
    "granian-starlette": (partial(granian, loop="asyncio"), "starlette", "select"),
}


@pytest.mark.parametrize(("launch", "app", "meter"), TURNS.values(), ids=TURNS)
def test_granian_falls_back_to_the_loop_turn(launch, app, meter, serve, connect):
    """Its sockets are out of reach; the turn bounds the wait from below."""
    server: Server = serve(launch(APPS + app))
    report, took = _after_two_blocking_ones((server.host, server.port), connect)
    assert (report["source"], report["meter"]) == ("turn", meter)
    assert 0.2 <= report["waited"] <= took + 0.01


@pytest.mark.parametrize("worker", ["asgi", "uvicorn-worker"])
def test_unix_sockets_fall_back_to_the_loop_turn(worker, serve, connect, tmp_path):
    """The kernel keeps no time for them; a proxy on the same machine may."""
    path = str(tmp_path / "server.sock")
    server: Server = serve(
        gunicorn(
            APPS + "bare",
            worker=worker,
            args=["--bind", f"unix:{path}"],
            env={"PROBE_PROXIES": "unix"},
        )
    )
    assert server.running
    report, took = _after_two_blocking_ones(path, connect)
    assert report["source"] == "turn"
    assert 0.2 <= report["waited"] <= took + 0.01
    told = connect(path).ask("/probe", f"X-Request-Start: t={time.time() - 7.0:.3f}")
    assert 6.0 < told["waited"] < 12.0


def test_a_stamp_comes_first(serve, connect):
    """What our own protocol notes beats everything else."""
    server: Server = serve(uvicorn(APPS + "stamped"))
    report = connect((server.host, server.port)).ask("/probe")
    assert report["source"] == "stamp"
    assert 1.5 <= report["waited"] < 5.0


WSGI: dict[str, tuple[Launcher, int]] = {
    "gunicorn-sync": (partial(gunicorn, worker="sync"), 1),
    "gunicorn-gthread": (partial(gunicorn, worker="gthread", threads=1), 1),
    "waitress": (partial(waitress, threads=1), 1),
}


@pytest.mark.parametrize(("launch", "threads"), WSGI.values(), ids=WSGI)
def test_wsgi_servers_hand_over_the_socket(launch, threads, serve, connect):
    """With one thread, the third request has waited for two."""
    server: Server = serve(launch(APPS + "wsgi"))
    report, took = _after_two_blocking_ones((server.host, server.port), connect)
    assert report["source"] == "tcp"
    assert report["pool_size"] == threads
    assert 0.3 <= report["waited"] <= took + 0.01


@pytest.mark.parametrize(
    ("launch", "size"),
    [
        (partial(gunicorn, worker="gthread", threads=3), 3),
        (partial(waitress, threads=3), 3),
        (partial(gunicorn, worker="gevent"), None),
    ],
    ids=["gthread", "waitress", "gevent"],
)
def test_threaded_servers_tell_their_pool(launch, size, serve, connect):
    """Gunicorn's gthread through its executor, Waitress through its settings; gevent has none."""
    server: Server = serve(launch(APPS + "wsgi"))
    report = connect((server.host, server.port)).ask("/probe")
    assert report["source"] == "tcp"
    assert report["pool_size"] == size


def test_granian_wsgi_has_a_header_or_nothing(serve, connect):
    """Nothing of the server is in reach, so a trusted proxy is the only witness."""
    server: Server = serve(
        granian(APPS + "wsgi", interface="wsgi", env={"PROBE_PROXIES": "127.0.0.1"})
    )
    client = connect((server.host, server.port))
    report = client.ask("/probe", f"X-Queue-Start: {(time.time() - 7.0) * 1e3:.0f}")
    assert report["source"] == "header"
    assert 6.0 < report["waited"] < 12.0
    assert client.ask("/probe")["waited"] == 0.0


def test_the_accept_queue_is_seen_from_inside(serve, connect):
    """Three clients come while the only worker is blocked: the first one served sees two behind."""
    server: Server = serve(gunicorn(APPS + "wsgi", worker="sync"))
    address = (server.host, server.port)
    blocking = connect(address)
    blocking.send("/block")
    time.sleep(0.1)
    clients = [connect(address) for _ in range(3)]
    for client in clients:
        client.send("/probe")
    blocking.receive()
    depths = [client.answer()["listeners"] for client in clients]
    assert depths == [[2], [1], [0]]
