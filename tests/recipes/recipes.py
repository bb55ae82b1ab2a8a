"""The recipes of docs/other-servers.md, started as their docstrings say."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from benchmarks.process import HOST, ROOT, Server
from benchmarks.servers import start

SERVERS = ROOT / "examples" / "servers"

ASGI = "tests.runner_gunicorn.apps:asgi"
WSGI = "tests.runner_gunicorn.apps:wsgi"

NAMES = ("hypercorn", "granian", "waitress")

TIMES = {
    "RESILIENCE_RUNNER_KEEP_ALIVE_TIMEOUT": "2",
    "RESILIENCE_RUNNER_HEADERS_TIMEOUT": "2",
    "RESILIENCE_RUNNER_DRAIN_DELAY": "1.5",
    "RESILIENCE_RUNNER_SHUTDOWN_TIMEOUT": "4",
    "RESILIENCE_DEADLINE_RECEIVE_TIMEOUT": "2",
}


def launch(name: str, *flags: str, **options: str) -> Server:
    """Start a recipe; `options` are named without the common prefix of their variables."""
    given = {f"RESILIENCE_{option.upper()}": value for option, value in options.items()}
    app = WSGI if name == "waitress" else ASGI
    env: Mapping[str, str] = {**TIMES, **given, "APP": app}

    def command(port: int) -> list[str]:
        where = [HOST, str(port)] if name == "granian" else [app, f"{HOST}:{port}"]
        return [sys.executable, str(SERVERS / f"serve_{name}.py"), *where, *flags]

    return start(command, env=env)
