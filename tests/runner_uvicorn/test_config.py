"""From our options and an app to Uvicorn's configuration, and who may answer in the protocol."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.testclient import TestClient

from benchmarks.servers import start
from resilience_mw import Config, ConfigError, Runner, protect
from resilience_mw.asgi import BackpressureMiddleware
from resilience_mw.runner.uvicorn import UvicornConfig, run
from resilience_mw.runner.uvicorn.state import State
from resilience_mw.wire import CLOSE

from .apps import app
from .client import get
from .test_wrap import Outside


def loaded(served, **options) -> UvicornConfig:
    config = UvicornConfig(served, log_config=None, **options)
    config.load()
    return config


def test_the_times_are_those_of_the_options():
    """What Uvicorn has is mapped; the protocol knows the rest."""
    runner = Runner(keep_alive_timeout=7, headers_timeout=8, shutdown_timeout=9)
    config = loaded(app, config=Config(runner=runner))
    assert (config.timeout_keep_alive, config.timeout_graceful_shutdown) == (7, 9)
    assert getattr(config.http_protocol_class, "runner", None) == runner


def test_what_every_request_reaches_first_may_answer():
    """A guard behind somebody else's middleware may not: it might never have been asked."""
    ours = Middleware(BackpressureMiddleware)
    outermost = Starlette(middleware=[ours, Middleware(Outside)])
    behind = Starlette(middleware=[Middleware(Outside), ours])
    for starlette in (outermost, behind):
        with TestClient(starlette):
            found = loaded(starlette).outermost()
        assert (type(found) is BackpressureMiddleware) == (starlette is outermost)
    assert loaded(app).outermost() is not None
    assert loaded(protect(app)).outermost() is not None
    assert loaded(Outside(protect(app))).outermost() is None
    assert loaded(app, config=Config(runner=Runner(protect=False))).outermost() is None


def test_an_old_uvicorn(monkeypatch):
    """It is told by its number, not by what breaks."""
    monkeypatch.delattr(uvicorn.Config, "load_app")
    with pytest.raises(ConfigError, match=r"uvicorn must be >= 0\.50, got"):
        UvicornConfig(app)


@pytest.mark.parametrize("workers", [0, -1])
def test_a_wrong_number_of_workers(workers):
    """One line says the rule."""
    with pytest.raises(ConfigError, match=rf"workers must be >= 1, got {workers}"):
        run(app, workers=workers)


def served_by(code: str, port: int) -> list[str]:
    head = "import sys; from tests.runner_uvicorn import apps; "
    head += "from resilience_mw.runner.uvicorn import run; "
    return [sys.executable, "-c", f"{head}sys.exit(run(apps.app, port={port}, {code}))"]


def test_an_app_that_is_an_object_and_a_limit_of_requests(serve):
    """From Python, with an option of Uvicorn's own: it stops by itself, without a delay."""
    server = serve(start(partial(served_by, "limit_max_requests=5")))
    for _ in range(5):
        assert get(server).status == 200
    assert server.wait(15) == 0
    assert "app: shut down" in server.output()


def test_importing_the_runner_loads_no_server():
    """Whoever only uses the middlewares needs neither."""
    code = "import resilience_mw.runner, resilience_mw.runner.wrap, sys; "
    code += "sys.exit('uvicorn' in sys.modules or 'gunicorn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_default_headers_while_draining():
    """Uvicorn sets them anew each second, which takes nothing back."""
    state = State()
    state.default_headers = [(b"date", b"now")]
    assert state.default_headers == [(b"date", b"now")]
    state.drain()
    state.default_headers = [(b"date", b"later")]
    assert state.default_headers == [(b"date", b"later"), CLOSE]
