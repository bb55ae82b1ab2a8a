"""What a roll-out costs a request, under ASGI and WSGI.

    python -m benchmarks.rollout_cost [--page docs/rollout.md]

Each row is the CPU time of one request through the middleware, less that of the same app bare, in
the round that was disturbed least. The goal is 1.5 us above an empty pass-through middleware for a
request that a rule is about, and next to nothing for any other.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from resilience_mw import RolloutRule
from resilience_mw.asgi import RolloutMiddleware as ASGIRollout
from resilience_mw.wsgi import RolloutMiddleware as WSGIRollout

from .fastpath import PassThrough, bare, measure
from .filling import fill, table

BY_SERVER = RolloutRule("items", path="/items/42", percent=100)
CASES: dict[str, dict[str, Any]] = {
    "a path that no rule is about": {
        "rules": [RolloutRule("elsewhere", path="/elsewhere", percent=100)]
    },
    "by server, without a guard": {"rules": [BY_SERVER], "guard": False},
    "by server": {"rules": [BY_SERVER]},
    "by request": {"rules": [RolloutRule("items", path="/items/42", percent=50, by="request")]},
    "by user": {
        "rules": [RolloutRule("items", path="/items/42", percent=50, by="user", header="host")]
    },
    "by server, below a prefix": {"rules": [RolloutRule("items", prefix="/items", percent=100)]},
}
HEADERS: list[tuple[str, str]] = []


def bare_wsgi(environ: Any, start_response: Any) -> list[bytes]:
    """The app: one start and one chunk."""
    start_response("200 OK", HEADERS)
    return [b"ok"]


class PassThroughWSGI:
    """An empty middleware."""

    def __init__(self, app: Any) -> None:
        self.app = app

    def __call__(self, environ: Any, start_response: Any) -> Any:
        return self.app(environ, start_response)


def measure_wsgi(app: Any, requests: int) -> float:
    """Return the CPU seconds that one request through ``app`` takes."""
    environ = {
        "REQUEST_METHOD": "GET",
        "PATH_INFO": "/items/42",
        "SCRIPT_NAME": "",
        "RAW_URI": "/items/42",
        "REMOTE_ADDR": "127.0.0.1",
        "HTTP_HOST": "example.org",
        "HTTP_ACCEPT": "*/*",
    }

    def start_response(status: str, headers: Any, exc_info: Any = None) -> Any:
        pass

    started = time.process_time()
    for _ in range(requests):
        for _chunk in app(environ, start_response):
            pass
    return (time.process_time() - started) / requests


def measure_asgi(app: Any, requests: int) -> float:
    """The same under ASGI, on a running loop."""
    return asyncio.run(measure(app, requests))


def added(
    measured: Callable[[Any, int], float], apps: dict[str, Any], rounds: int, requests: int
) -> dict[str, float]:
    """Return the microseconds that each of ``apps`` adds to the first."""
    best = dict.fromkeys(apps, float("inf"))
    for _ in range(rounds):
        for name, app in apps.items():
            best[name] = min(best[name], measured(app, requests))
    base = next(iter(best.values()))
    return {name: (seconds - base) * 1e6 for name, seconds in best.items()}


def main() -> None:
    """Print the table, or put it into a page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--requests", type=int, default=10_000, help="per case and round")
    parser.add_argument("--page", type=Path)
    arguments = parser.parse_args()
    asgi = {"bare": bare, "an empty middleware": PassThrough(bare)}
    asgi |= {name: ASGIRollout(bare, new=bare, **options) for name, options in CASES.items()}
    wsgi: dict[str, Any] = {"bare": bare_wsgi, "an empty middleware": PassThroughWSGI(bare_wsgi)}
    wsgi |= {
        name: WSGIRollout(bare_wsgi, new=bare_wsgi, **options) for name, options in CASES.items()
    }
    columns = [
        added(measured, apps, arguments.rounds, arguments.requests)
        for measured, apps in ((measure_asgi, asgi), (measure_wsgi, wsgi))
    ]
    rows = [
        [name, *(f"{column[name]:.2f}" for column in columns)] for name in asgi if name != "bare"
    ]
    text = table(["microseconds a request", "ASGI", "WSGI"], rows)
    if arguments.page is None:
        print(text)
    else:
        fill(arguments.page, "cost", text)


if __name__ == "__main__":
    main()
