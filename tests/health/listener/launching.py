"""Servers of every kind, each with a port for probes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.process import HOST, Server, free_port
from benchmarks.servers import granian, gunicorn, hypercorn, start, uvicorn, waitress

from .probing import Port

APPS = "tests.health.listener.apps"
ASGI, WSGI = f"{APPS}:asgi", f"{APPS}_wsgi:wsgi"

SHORT = {"RESILIENCE_RUNNER_DRAIN_DELAY": "1", "RESILIENCE_RUNNER_SHUTDOWN_TIMEOUT": "3"}


def ours(app: str, *flags: str, **options: Any) -> Server:
    """`resilience-mw run`."""
    return start(
        lambda port: [
            *(sys.executable, "-m", "resilience_mw", "run", app),
            *("--host", HOST, "--port", str(port), *flags),
        ],
        **options,
    )


ADAPTED = ("-c", "python:resilience_mw.runner.gunicorn")

KINDS: dict[str, Callable[..., Server]] = {
    "uvicorn": partial(uvicorn, ASGI),
    "uvicorn, two workers": partial(uvicorn, ASGI, args=["--workers", "2"]),
    "uvicorn, an app without lifespan": partial(uvicorn, f"{APPS}:unaware"),
    "gunicorn sync, two workers": partial(gunicorn, WSGI, worker="sync", workers=2),
    "gunicorn gthread, preloaded": partial(gunicorn, WSGI, workers=2, args=["--preload"]),
    "gunicorn gevent": partial(gunicorn, WSGI, worker="gevent"),
    "gunicorn asgi": partial(gunicorn, ASGI, worker="asgi"),
    "gunicorn asgi, preloaded": partial(gunicorn, ASGI, worker="asgi", args=["--preload"]),
    "gunicorn uvicorn-worker": partial(gunicorn, ASGI, worker="uvicorn-worker"),
    "hypercorn": partial(hypercorn, ASGI),
    "granian": partial(granian, ASGI),
    "waitress": partial(waitress, WSGI),
    "our runner": partial(ours, ASGI),
    "our runner, two workers": partial(ours, f"{APPS}:unprotected", "--workers", "2"),
    "our adapter, sync": partial(gunicorn, WSGI, worker="sync", args=ADAPTED),
    "our adapter, gthread": partial(gunicorn, WSGI, workers=2, args=ADAPTED),
    "our adapter, gevent": partial(gunicorn, WSGI, worker="gevent", args=ADAPTED),
    "our adapter, asgi": partial(gunicorn, ASGI, worker="asgi", workers=2, args=ADAPTED),
    "our adapter, uvicorn-worker": partial(gunicorn, ASGI, worker="uvicorn-worker", args=ADAPTED),
}


def launch(kind: str, probes: Port | None = None, **env: str) -> tuple[Server, Port]:
    """Start a server; ``env`` is named without the common prefix."""
    port = probes or Port(free_port())
    variables = {f"RESILIENCE_{name.upper()}": value for name, value in env.items()}
    variables |= {"RESILIENCE_HEALTH_PORT": str(port.port), "RESILIENCE_HEALTH_HOST": HOST}
    return KINDS[kind](env=SHORT | variables), port
