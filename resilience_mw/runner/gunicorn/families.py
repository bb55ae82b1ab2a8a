"""The kinds of worker classes, and what each can and cannot do."""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Family:
    """One kind of worker class.

    Attributes:
        name: what users call it.
        base: where the class is defined that all of its kind inherit from.
        mixin: where ours is.
        threads, event_loop: what serves requests side by side; neither = one at a time.
        cannot: what it is not able to do, and why: the options' names and one sentence each.
    """

    name: str
    base: str
    mixin: str
    threads: bool = False
    event_loop: bool = False
    cannot: tuple[tuple[str, str], ...] = ()

    def load(self) -> type[Any]:
        """Return our mixin."""
        return _load(self.mixin)

    @property
    def asgi(self) -> bool:
        """Whether its apps speak ASGI."""
        return self.event_loop


_NO_INTERRUPT = (
    "deadline.timeout",
    "a thread cannot be stopped: a late response is only counted, and remaining() tells the view",
)

SYNC = Family(
    "sync",
    "gunicorn.workers.sync.SyncWorker",
    "resilience_mw.runner.gunicorn.worker_sync.SyncMixin",
    cannot=(
        ("runner.keep_alive_timeout", "it closes the connection after every response"),
        (
            "runner.headers_timeout",
            "one slow client stops the whole worker meanwhile; it is answered 408 at four fifths "
            "of Gunicorn's timeout at the latest",
        ),
        ("backpressure.queue_size", "there is no second request that could wait"),
        ("health.ready_path", "a probe waits behind requests; with health.port it does not"),
        _NO_INTERRUPT,
    ),
)
GTHREAD = Family(
    "gthread",
    "gunicorn.workers.gthread.ThreadWorker",
    "resilience_mw.runner.gunicorn.worker_gthread.ThreadMixin",
    threads=True,
    cannot=(_NO_INTERRUPT,),
)
GEVENT = Family(
    "gevent",
    "gunicorn.workers.ggevent.GeventWorker",
    "resilience_mw.runner.gunicorn.worker_gevent.GeventMixin",
    cannot=(_NO_INTERRUPT,),
)
ASGI = Family(
    "asgi",
    "gunicorn.workers.gasgi.ASGIWorker",
    "resilience_mw.runner.gunicorn.worker_asgi.LoopMixin",
    event_loop=True,
)
UVICORN = Family(
    "uvicorn-worker",
    "uvicorn_worker._workers.UvicornWorker",
    "resilience_mw.runner.gunicorn.worker_uvicorn.UvicornMixin",
    event_loop=True,
)
OTHER = Family(
    "other",
    "",
    "resilience_mw.runner.gunicorn.base.Adapted",
    cannot=(
        ("runner.drain_delay", "its readiness turns, but it does not close connections meanwhile"),
        ("runner.keep_alive_timeout", "whatever it does itself"),
        ("runner.headers_timeout", "whatever it does itself"),
        ("deadline.receive_timeout", "whatever it does itself"),
        ("runner.shutdown_timeout", "whatever it does itself, within Gunicorn's graceful_timeout"),
    ),
)

FAMILIES = (SYNC, GTHREAD, GEVENT, ASGI, UVICORN, OTHER)

_DEPRECATED = {"uvicorn.workers.UvicornWorker": UVICORN}


def family_of(worker_class: type[Any]) -> Family:
    """Return the kind that a worker class belongs to."""
    names = {f"{base.__module__}.{base.__qualname__}" for base in worker_class.__mro__}
    for family in FAMILIES:
        if family.base in names:
            return family
    for name, family in _DEPRECATED.items():
        if name in names:
            return family
    return OTHER


def _load(path: str) -> type[Any]:
    loaded: type[Any] = pkgutil.resolve_name(path)
    return loaded
