"""Start Gunicorn with our configuration, at times that tests can wait for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from benchmarks.process import Server
from benchmarks.servers import gunicorn

T = TypeVar("T")

THREADS = ("sync", "gthread", "gevent")
LOOPS = ("asgi", "uvicorn-worker")
CLASSES = (*THREADS, *LOOPS)

TIMES = {
    "RESILIENCE_RUNNER_KEEP_ALIVE_TIMEOUT": "1.5",
    "RESILIENCE_RUNNER_HEADERS_TIMEOUT": "1",
    "RESILIENCE_RUNNER_DRAIN_DELAY": "1",
    "RESILIENCE_RUNNER_SHUTDOWN_TIMEOUT": "3",
    "RESILIENCE_DEADLINE_RECEIVE_TIMEOUT": "2",
}
"""Seconds, by variable; tests change one or the other."""


def app_for(worker: str) -> str:
    """The import string of the test app in the protocol that a worker class speaks."""
    return f"tests.runner_gunicorn.apps:{'asgi' if worker in LOOPS else 'wsgi'}"


def launch(worker: str, *args: str, app: str = "", workers: int = 1, **env: str) -> Server:
    """Start the test app on a worker class; `env` is named without the common prefix."""
    variables = {
        (name if name.isupper() else f"RESILIENCE_{name.upper()}"): value
        for name, value in env.items()
    }
    return gunicorn(
        app or app_for(worker),
        worker=worker,
        workers=workers,
        args=["-c", "python:resilience_mw.runner.gunicorn", *args],
        env={**TIMES, **variables},
    )


def together(**jobs: Callable[[], Any]) -> dict[str, Any]:
    """Run jobs side by side, each in a thread, and return what each returned."""
    results: dict[str, Any] = {}

    def run(name: str, job: Callable[[], Any]) -> None:
        try:
            results[name] = job()
        except Exception as error:
            results[name] = error

    threads = [threading.Thread(target=run, args=item) for item in jobs.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def until(condition: Callable[[], T], timeout: float = 10.0) -> T:
    """Wait until a condition holds, and return what it said last."""
    end = time.monotonic() + timeout
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return value
