"""Every server and worker class with comparable times: plain, and with our runner or recipe."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from benchmarks.process import HOST, ROOT, Server, free_port

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
    """How a server is started.

    Attributes:
        app: the app's import string.
        plain: the words after the interpreter's ``-m``.
        ours: the same with our runner, or a recipe's script and its arguments.
        one_at_a_time: whether a worker serves one request at a time.
    """

    app: str
    plain: tuple[str, ...]
    ours: tuple[str, ...]
    one_at_a_time: bool = False

    @property
    def runner(self) -> str:
        """What is ours: the runner, or a recipe of docs/other-servers.md."""
        return "recipe" if self.ours[0].endswith(".py") else "ours"

    def start(self, *, ours: bool, keep_alive: int, workers: int = 1) -> Server:
        """Start it, and wait until it serves; `workers` is for one that serves one at a time."""
        words = self.ours if ours else self.plain
        port = free_port()
        keep = str(keep_alive)
        filled = [word.format(host=HOST, port=port, keep=keep, app=self.app) for word in words]
        if self.one_at_a_time:
            filled += ["--workers", str(workers)]
        env = {**TIMES, "RESILIENCE_RUNNER_KEEP_ALIVE_TIMEOUT": keep, "APP": self.app}
        module = [] if filled[0].endswith(".py") else ["-m"]
        server = Server([sys.executable, *module, *filled], port, env=env)
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


def _recipe(name: str) -> str:
    return str(ROOT / "examples" / "servers" / f"serve_{name}.py")


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
        (_recipe("hypercorn"), "{app}", "{host}:{port}"),
    ),
    "granian": Kind(
        ASGI,
        (
            *("granian", "--interface", "asgi", "--http", "1", "--host", "{host}"),
            *("--port", "{port}", "--http1-header-read-timeout", "{keep}000", "{app}"),
        ),
        (_recipe("granian"), "{host}", "{port}"),
    ),
    "waitress": Kind(
        WSGI,
        (
            *("waitress", "--listen={host}:{port}", "--channel-timeout={keep}"),
            *("--cleanup-interval=1", "{app}"),
        ),
        (_recipe("waitress"), "{app}", "{host}:{port}"),
    ),
}
