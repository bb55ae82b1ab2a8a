"""An app is wrapped once, whoever did it first, and its guards are found wherever they stand."""

from __future__ import annotations

import functools
from typing import Any

import flask
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.testclient import TestClient

from resilience_mw import Config, Health, Limit, Runner, protect
from resilience_mw.asgi import BackpressureMiddleware, Guard
from resilience_mw.core.health import HealthPolicy
from resilience_mw.core.lifecycle import State
from resilience_mw.flask import Resilience
from resilience_mw.runner.wrap import guards_of, is_wrapped, wrap
from resilience_mw.wsgi import Guard as WSGIGuard


async def asgi(scope: Any, receive: Any, send: Any) -> None:
    """An ASGI app."""


def wsgi(environ: Any, start_response: Any) -> list[bytes]:
    """A WSGI app."""
    return []


class Outside:
    """Somebody else's middleware."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.app(scope, receive, send)


guarded = protect(asgi)


async def named(scope: Any, receive: Any, send: Any) -> None:
    """Calls a guard by the name of a module's variable."""
    await guarded(scope, receive, send)


def closed_over() -> Any:
    inner = protect(asgi)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await inner(scope, receive, send)

    return app


def starlette() -> Starlette:
    return Starlette(middleware=[Middleware(BackpressureMiddleware)])


def fastapi() -> FastAPI:
    app = FastAPI()
    app.add_middleware(BackpressureMiddleware)
    return app


def flask_app() -> flask.Flask:
    app = flask.Flask("app")
    Resilience(app)
    return app


def flask_by_hand() -> flask.Flask:
    app = flask.Flask("app")
    app.wsgi_app = protect(app.wsgi_app)  # type: ignore[method-assign]
    return app


WRAPPED = {
    "protect": lambda: protect(asgi),
    "protect-wsgi": lambda: protect(wsgi),
    "middleware-around": lambda: Outside(Outside(protect(asgi))),
    "method": lambda: Outside(protect(asgi)).__call__,
    "partial": lambda: functools.partial(protect(asgi)),
    "closure": closed_over,
    "global": lambda: named,
    "starlette": starlette,
    "fastapi": fastapi,
    "flask": flask_app,
    "flask-by-hand": flask_by_hand,
}


@pytest.mark.parametrize("make", WRAPPED.values(), ids=WRAPPED)
def test_wrapped_already(make):
    """Whoever wrapped first: the runner serves the app as it is."""
    app = make()
    assert is_wrapped(app)
    wrapped = wrap(app, Config())
    assert wrapped.app is app
    assert not wrapped.added


@pytest.mark.parametrize(
    ("app", "kind"),
    [(asgi, Guard), (Outside(asgi), Guard), (wsgi, WSGIGuard), (FastAPI(), Guard)],
    ids=["asgi", "middleware", "wsgi", "fastapi"],
)
def test_not_wrapped_yet(app, kind):
    """An app without a guard gets one, once."""
    wrapped = wrap(app, Config())
    assert wrapped.added
    assert isinstance(wrapped.app, kind)
    assert wrap(wrapped.app, Config()).app is wrapped.app
    assert wrapped.guards() == [wrapped.app]


def test_flask_gets_the_extension():
    """A Flask app stays itself, and its own configuration counts, below what was given."""
    app = flask.Flask("app")
    app.config["RESILIENCE"] = {"limit": {"max_concurrent_requests": 7}}
    wrapped = wrap(app, Config(health=Health(ready_path="/ready")))
    assert wrapped.app is app
    assert wrapped.added
    snapshot = app.extensions["resilience_mw"].snapshot()
    assert [part.limit for part in snapshot.policies if getattr(part, "name", "") == "limit"] == [7]
    assert app.test_client().get("/ready").data == b"ok"


def test_switched_off():
    """With `runner.protect` off nothing is wrapped."""
    wrapped = wrap(asgi, Config(runner=Runner(protect=False)))
    assert wrapped.app is asgi
    assert wrapped.guards() == []


def test_options_reach_the_guard():
    """The app gets the options that the runner was given."""
    wrapped = wrap(asgi, Config(limit=Limit(max_concurrent_requests=3)))
    assert wrapped.app.snapshot().limit == 3


@pytest.mark.parametrize("make", [starlette, fastapi])
def test_guards_of_starlette_appear_when_it_starts(make):
    """Its middlewares are made late; the runner looks again when it stops."""
    app = make()
    wrapped = wrap(app, Config())
    assert wrapped.guards() == []
    with TestClient(app):
        assert [type(guard) for guard in wrapped.guards()] == [BackpressureMiddleware]


def test_drain_reaches_every_guard():
    """Readiness turns, however deep the guard stands."""
    app = Outside(protect(asgi))
    wrap(app, Config()).drain()
    (guard,) = guards_of(app)
    assert [p.lifecycle.state for p in guard.policies if isinstance(p, HealthPolicy)] == [
        State.DRAINING
    ]
