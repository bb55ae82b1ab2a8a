"""Apps that protect themselves, each in its own way."""

from __future__ import annotations

from typing import Any

from flask import Flask
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from resilience_mw import Config, Health, protect
from resilience_mw.asgi import HealthMiddleware


async def _hello(request: Any) -> PlainTextResponse:
    return PlainTextResponse("hello")


api = Starlette(routes=[Route("/", _hello)])
plain = protect(api)
coded = protect(api, Config(health=Health(startup_path="/coded")))
probes = HealthMiddleware(api)
wsgi = protect(Flask("wsgi"))
bare = Flask("bare")


def make() -> Any:
    """Be a factory whose signature says so."""
    return protect(api)


def make_named(name: str = "wsgi") -> Any:
    """Be one whose signature does not."""
    return protect(Flask(name))
