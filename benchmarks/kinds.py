"""Every server and worker class with comparable times, without and with our runner."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from benchmarks.process import HOST, Server, free_port

TIMES = {
    "RESILIENCE_RUNNER_KEEP_ALIVE_TIMEOUT": "3",
    "RESILIENCE_RUNNER_HEADERS_TIMEOUT": "4",
    "RESILIENCE_DEADLINE_RECEIVE_TIMEOUT": "6",
    "RESILIENCE_RUNNER_DRAIN_DELAY": "2",
    "RESILIENCE_RUNNER_SHUTDOWN_TIMEOUT": "8",
}

ASGI = "tests.runner_gunicorn.apps:asgi"
WSGI = "tests.runner_gunicorn.apps:wsgi"


@dataclass(frozen=True)
class Kind:
    """How a server is started, plain and with our runner; `None` = we have none for it."""

    app: str
    plain: tuple[str, ...]
    ours: tuple[str, ...] | None
    one_at_a_time: bool = False

    def start(self, *, ours: bool, keep_alive: int, workers: int = 1) -> Server:
        """Start it, and wait until it serves; `workers` is for one that serves one at a time."""
        words = self.ours if ours else self.plain
        assert words is not None
        port = free_port()
        keep = str(keep_alive)
        filled = [word.format(host=HOST, port=port, keep=keep, app=self.app) for word in words]
        if self.one_at_a_time:
            filled += ["--workers", str(workers)]
        env = {**TIMES, "RESILIENCE_RUNNER_KEEP_ALIVE_TIMEOUT": keep}
        server = Server([sys.executable, "-m", *filled], port, env=env)
        server.wait_until_serving()
        return server


def _uvicorn(http: str, *flags: str) -> Kind:
    where = ("--port", "{port}", "--http", http, *flags, "{app}")
    plain = ("uvicorn", "--no-access-log", "--timeout-keep-alive", "{keep}", *where)
    return Kind(ASGI, plain, ("resilience_mw", "run", "--server", "uvicorn", *where))


def _gunicorn(app: str, *flags: str, one_at_a_time: bool = False) -> Kind:
    words = ("gunicorn", "--bind", "{host}:{port}", "--no-control-socket", "--timeout", "8", *flags)
    plain = (*words, "--keep-alive", "{keep}", "--graceful-timeout", "10", "{app}")
    ours = (*words, "-c", "python:resilience_mw.runner.gunicorn", "{app}")
    return Kind(app, plain, ours, one_at_a_time)


KINDS = {
    "uvicorn httptools": _uvicorn("httptools"),
    "uvicorn h11": _uvicorn("h11"),
    "uvicorn --workers 2": _uvicorn("httptools", "--workers", "2"),
    "gunicorn uvicorn-worker": _gunicorn(ASGI, "-k", "uvicorn_worker.UvicornWorker"),
    "gunicorn asgi": _gunicorn(ASGI, "-k", "asgi"),
    "gunicorn gthread": _gunicorn(WSGI, "-k", "gthread", "--threads", "16"),
    "gunicorn sync": _gunicorn(WSGI, "-k", "sync", one_at_a_time=True),
    "gunicorn gevent": _gunicorn(WSGI, "-k", "gevent"),
    "hypercorn": Kind(
        ASGI,
        ("hypercorn", "--bind", "{host}:{port}", "--keep-alive", "{keep}", "{app}"),
        None,
    ),
    "granian": Kind(
        ASGI,
        (
            *("granian", "--interface", "asgi", "--http", "1", "--host", "{host}"),
            *("--port", "{port}", "--http1-header-read-timeout", "{keep}000", "{app}"),
        ),
        None,
    ),
    "waitress": Kind(
        WSGI,
        (
            *("waitress", "--listen={host}:{port}", "--channel-timeout={keep}"),
            *("--cleanup-interval=1", "{app}"),
        ),
        None,
    ),
}
