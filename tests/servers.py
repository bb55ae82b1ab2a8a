"""The real servers that tests run on, by name, to parametrise over.

    @pytest.mark.parametrize("launch", ASGI_SERVERS.values(), ids=ASGI_SERVERS)
    def test_something(launch, serve):
        server = serve(launch("tests.runner.app:app"))

The launchers themselves are the benchmarks' own (`benchmarks.servers`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from benchmarks.servers import (
    Server,
    ServerError,
    granian,
    gunicorn,
    hypercorn,
    start,
    uvicorn,
    waitress,
)

__all__ = [
    "ASGI_SERVERS",
    "UVICORN",
    "WSGI_SERVERS",
    "Launcher",
    "Server",
    "ServerError",
    "granian",
    "gunicorn",
    "hypercorn",
    "start",
    "uvicorn",
    "waitress",
]

Launcher = Callable[..., Server]

UVICORN: dict[str, Launcher] = {
    "uvicorn-h11-asyncio": partial(uvicorn, http="h11", loop="asyncio"),
    "uvicorn-h11-uvloop": partial(uvicorn, http="h11", loop="uvloop"),
    "uvicorn-httptools-asyncio": partial(uvicorn, http="httptools", loop="asyncio"),
    "uvicorn-httptools-uvloop": partial(uvicorn, http="httptools", loop="uvloop"),
}

ASGI_SERVERS: dict[str, Launcher] = {
    **UVICORN,
    "gunicorn-asgi": partial(gunicorn, worker="asgi"),
    "gunicorn-uvicorn-worker": partial(gunicorn, worker="uvicorn-worker"),
    "hypercorn-asyncio": partial(hypercorn, worker="asyncio"),
    "granian-asgi": partial(granian, interface="asgi"),
}

WSGI_SERVERS: dict[str, Launcher] = {
    "gunicorn-sync": partial(gunicorn, worker="sync"),
    "gunicorn-gthread": partial(gunicorn, worker="gthread"),
    "gunicorn-gevent": partial(gunicorn, worker="gevent"),
    "granian-wsgi": partial(granian, interface="wsgi"),
    "waitress": waitress,
}
