"""Several worker processes of real servers agree on what the store says."""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest

from benchmarks.process import Server
from benchmarks.servers import gunicorn, uvicorn
from resilience_mw.cli.program import run
from resilience_mw.rollout.stores import open_store
from tests.rollout.redis_server import RedisServer

WORKERS = 3
APPS = "tests.rollout.stores.apps"

SERVERS: dict[str, Callable[..., Server]] = {
    "gthread": partial(gunicorn, f"{APPS}:wsgi_app", workers=WORKERS),
    "gthread-preload": partial(gunicorn, f"{APPS}:wsgi_app", workers=WORKERS, args=["--preload"]),
    "gevent": partial(gunicorn, f"{APPS}:wsgi_app", worker="gevent", workers=WORKERS),
    "asgi-preload": partial(
        gunicorn, f"{APPS}:asgi_app", worker="asgi", workers=WORKERS, args=["--preload"]
    ),
    "uvicorn": partial(uvicorn, f"{APPS}:asgi_app", args=["--workers", str(WORKERS)]),
}


def ask(server: Server) -> list[list[str]]:
    """Return which stack of which process answered each of some requests.

    They come at once, on connections of their own, or one process would take them all.
    """
    connections = [
        http.client.HTTPConnection(server.host, server.port, timeout=20) for _ in "12345"
    ]
    for connection in connections:
        connection.connect()
    for connection in connections:
        connection.request("GET", "/item_collect.htm", headers={"Connection": "close"})
    answers = []
    for connection in connections:
        response = connection.getresponse()
        assert response.status == 200
        answers.append(response.read().decode().split())
        connection.close()
    return answers


def until_all(server: Server, stack: str) -> None:
    """Wait until every process has answered with a stack; none may go back to another then."""
    end = time.monotonic() + 60
    agreed: set[str] = set()
    while len(agreed) < WORKERS:
        assert time.monotonic() < end, agreed
        answers = ask(server)
        assert {name for name, process in answers if process in agreed} <= {stack}
        agreed |= {process for name, process in answers if name == stack}


@pytest.mark.parametrize("preload", [(), ("--preload",)], ids=["", "preload"])
def test_our_workers_tell_the_store_before_the_first_request(
    preload: tuple[str, ...], serve: Callable[[Server], Server], tmp_path: Path
):
    """A worker of Gunicorn knows that it serves; under WSGI nothing else says so."""
    store = open_store(f"file:{tmp_path / 'rollout.toml'}")
    adapted = ["-c", "python:resilience_mw.runner.gunicorn", *preload]
    serve(gunicorn(f"{APPS}:wsgi_app", args=adapted, env={"STORE": store.name}))
    end = time.monotonic() + 20
    while not store.load():
        assert time.monotonic() < end
        time.sleep(0.05)
    assert [change.why for change in store.history()] == ["as in the code"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("gthread", "file"),
        ("gthread-preload", "redis"),
        ("gevent", "redis"),
        ("asgi-preload", "file"),
        ("uvicorn", "redis"),
    ],
)
def test_all_workers_follow_the_command(
    name: str,
    kind: str,
    serve: Callable[[Server], Server],
    tmp_path: Path,
    redis_server: RedisServer,
    capsys: pytest.CaptureFixture[str],
):
    """Up and back, on each server with three workers, by the command that a person types."""
    file = f"file:{tmp_path / 'rollout.toml'}"
    url = file if kind == "file" else f"{redis_server.url}?prefix={uuid4()}"
    server = serve(SERVERS[name](env={"STORE": url}))
    until_all(server, "old")
    assert run(["rollout", "set", "favourites", "100", "--yes", "--store", url]) == 0
    until_all(server, "new")
    assert run(["rollout", "rollback", "--why", "errors", "--store", url]) == 0
    until_all(server, "old")
    assert capsys.readouterr().out.endswith("favourites: 100 % -> 0 %\n")
    # What the servers told the store at their start is told once, whichever of them was first.
    assert [change.why for change in open_store(url).history()] == ["errors", "", "as in the code"]
