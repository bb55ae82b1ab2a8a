"""What can be overloaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from benchmarks.servers import Server, gunicorn, uvicorn


@dataclass(frozen=True, slots=True)
class Handler:
    """One kind of work on one server.

    Attributes:
        title: what it is, for the person who watches.
        app: import string of the app.
        path: which of its paths is asked for.
        launch: starts the server.
        clients: how many at once are enough to find its capacity.
    """

    title: str
    app: str
    path: str
    launch: Callable[..., Server]
    clients: int


HANDLERS = {
    "compute": Handler(
        title="10 ms of CPU without an await, FastAPI on Uvicorn",
        app="benchmarks.apps.asgi:app",
        path="/compute",
        launch=partial(uvicorn, loop="asyncio"),
        clients=8,
    ),
    "io": Handler(
        title="2 ms of CPU, a backend that takes 50 ms, 2 ms of CPU, FastAPI on Uvicorn",
        app="benchmarks.apps.asgi:app",
        path="/io",
        launch=partial(uvicorn, loop="asyncio"),
        clients=64,
    ),
    "wsgi": Handler(
        title="10 ms of CPU, Flask on Gunicorn with 8 threads",
        app="benchmarks.apps.wsgi:app",
        path="/compute",
        launch=gunicorn,
        clients=8,
    ),
}

# Those that `make demo` shows: the three places where requests queue.
SHOWN = ("compute", "io", "wsgi")
