"""The app is protected once, whoever did it first."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import pytest

from benchmarks.process import ROOT, Server
from benchmarks.servers import gunicorn
from benchmarks.talk import Client, get

from .launch import CLASSES, LOOPS, app_for, launch

CONF = """
import sys
from resilience_mw.runner.gunicorn import *
from resilience_mw.runner.wrap import guards_of

def worker_exit(server, worker):
    app = worker.asgi if hasattr(worker, "asgi") else worker.wsgi
    print("guards", len(guards_of(app)), file=sys.stderr, flush=True)
"""


def guards(serve: Callable[[Server], Server], conf: str, app: str, worker: str, **env: str) -> str:
    """Serve an app for a moment, and return what its worker says of its guards."""
    variables = {"RESILIENCE_RUNNER_DRAIN_DELAY": "0", **env}
    folder = ROOT / "examples"
    server = serve(gunicorn(app, worker=worker, args=["-c", conf], env=variables, cwd=folder))
    get(server, "/")
    assert server.stop() == 0
    return next(line for line in server.output().splitlines() if line.startswith("guards "))


@pytest.fixture
def conf(tmp_path) -> str:
    path = tmp_path / "gunicorn.conf.py"
    path.write_text(CONF)
    return str(path)


@pytest.mark.parametrize("worker", CLASSES)
def test_an_app_that_nobody_has_protected_is(worker, conf, serve: Callable[[Server], Server]):
    """After the fork, by whichever worker class serves it."""
    assert guards(serve, conf, app_for(worker), worker) == "guards 1"


@pytest.mark.parametrize(
    ("app", "worker"),
    [
        ("wsgi_plain:app", "gthread"),
        ("flask_app:app", "gthread"),
        ("asgi_plain:app", "asgi"),
        ("fastapi_app:app", "uvicorn-worker"),
    ],
)
def test_an_app_that_is_protected_is_left_alone(
    app, worker, conf, serve: Callable[[Server], Server]
):
    """In code, by the extension, or as a middleware."""
    assert guards(serve, conf, app, worker) == "guards 1"


def test_nobody_is_protected_who_does_not_want_it(conf, serve: Callable[[Server], Server]):
    """The times count all the same."""
    off = {"RESILIENCE_RUNNER_PROTECT": "false"}
    assert guards(serve, conf, app_for("gthread"), "gthread", **off) == "guards 0"


def test_a_preloaded_app_is_protected_after_the_fork(conf, serve: Callable[[Server], Server]):
    """In each worker for itself; the stop reaches it as well."""
    server = serve(launch("gthread", "--preload", workers=2))
    assert get(server, "/readyz").status == 200


@pytest.mark.parametrize("worker", [worker for worker in CLASSES if worker != "sync"])
def test_an_idle_connection_outlives_the_balancers_patience(
    worker, serve: Callable[[Server], Server]
):
    """It is still good a little after the balancer would have closed it."""
    server = serve(launch(worker, runner_keep_alive_timeout="1.5"))
    with Client(server) as client:
        assert client.get("/").ok
        time.sleep(1.1)  # of a balancer that waits for one second
        assert client.get("/").ok


@pytest.mark.skipif("SLOW" not in os.environ, reason="takes a minute: SLOW=1")
@pytest.mark.parametrize("worker", ["gthread", *LOOPS])
def test_an_idle_connection_is_good_at_61_seconds(worker, serve: Callable[[Server], Server]):
    """With the default times, behind a balancer that closes idle connections after sixty."""
    args = ["-c", "python:resilience_mw.runner.gunicorn"]
    server = serve(gunicorn(app_for(worker), worker=worker, args=args))
    with Client(server) as client:
        assert client.get("/").ok
        time.sleep(61.0)
        assert client.get("/").ok
