"""Apps to be checked, some of them with something to find."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from flask import Flask
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.types import ASGIApp

from resilience_mw import Config, Deadline, Health, Limit, Runner, protect
from resilience_mw.asgi import BackpressureMiddleware, HealthMiddleware
from resilience_mw.flask import Resilience
from resilience_mw.health import Check, DiskCheck, RedisCheck, TcpCheck, UpstreamCheck


def wsgi_app(environ: Any, start_response: Any) -> list[bytes]:
    """Answer."""
    start_response("200 OK", [])
    return [b""]


fastapi = FastAPI()


@fastapi.get("/")
async def hello() -> str:
    """Answer."""
    return "hello"


with_probe = FastAPI()


@with_probe.get("/readyz")
@with_probe.get("/{anything}")
async def ready() -> str:
    """Be shadowed by our own probe; the other route takes anything and says nothing of it."""
    return "ready"


protected = protect(with_probe)


class Timing(BaseHTTPMiddleware):
    """A middleware that stands outside of ours."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(app)


slowed = FastAPI()
slowed.add_middleware(BackpressureMiddleware)
slowed.add_middleware(Timing)

inside = FastAPI()
inside.add_middleware(Timing)
inside.add_middleware(BackpressureMiddleware)

flask = Flask(__name__)
flask.config["RESILIENCE"] = {"limit": {"max_concurrent_requests": 4}}


@flask.get("/livez")
def live() -> str:
    """Be shadowed."""
    return "live"


extended = Flask(__name__)
Resilience(extended)

coded = protect(
    FastAPI(),
    Config(
        limit=Limit(max_concurrent_requests=7),
        deadline=Deadline(timeout=9),
        runner=Runner(drain_delay=4),
    ),
)

layered = FastAPI()
layered.add_middleware(BackpressureMiddleware, queue_size=3)
layered.add_middleware(HealthMiddleware, ready_path="/ready")

merged = HealthMiddleware(BackpressureMiddleware(FastAPI(), queue_size=3), ready_path="/ready")

flask_coded = Flask("flask_coded")
flask_coded.config["RESILIENCE"] = {"limit": {"max_concurrent_requests": 4}}
Resilience(flask_coded, config=Config(deadline=Deadline(timeout=9), runner=Runner(drain_delay=4)))


def make(name: str = "made") -> Any:
    """Make an app that protects itself."""
    return protect(FastAPI(title=name), Config(deadline=Deadline(timeout=8), runner=_LATE))


_LATE = Runner(drain_delay=6)


def check() -> bool:
    """Pass."""
    return True


asking = protect(
    FastAPI(),
    Config(
        health=Health(
            checks={
                "next": UpstreamCheck("http://127.0.0.1:7001/status?token=hunter2"),
                "cache": RedisCheck("redis://:hunter2@cache/0"),
                "text": "redis://:hunter2@cache/1?password=hunter2",
                "disk": DiskCheck("/"),
                "port": TcpCheck("127.0.0.1", 7),
                "own": Check(check),
            }
        )
    ),
)
