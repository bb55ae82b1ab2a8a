"""The probes are answered while nothing else is.

The bounds are wide, for the machine may be busy too; `benchmarks/out_of_band.py` has the figures.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from benchmarks.process import Server
from benchmarks.talk import get

from .launching import launch
from .probing import Port, until

BUSY = 2.0
"""Seconds for which each test keeps its server busy."""

WIDE = 1.0
"""Seconds: what waited for the app would take longer."""


@contextmanager
def asking(server: Server, path: str, clients: int = 1) -> Iterator[None]:
    """Have so many clients wait for an answer meanwhile."""
    threads = [
        threading.Thread(target=get, args=(server, path, 60.0), daemon=True) for _ in range(clients)
    ]
    for thread in threads:
        thread.start()
    yield
    for thread in threads:
        thread.join()


def slowest(port: Port, seconds: float) -> float:
    """Ask all probes again and again, and return how long the slowest answer took, each a 200."""
    begun, worst = time.monotonic(), 0.0
    while time.monotonic() - begun < seconds:
        for path in ("/livez", "/readyz", "/startupz"):
            asked = time.monotonic()
            assert port.status(path) == 200
            worst = max(worst, time.monotonic() - asked)
        time.sleep(0.02)
    return worst


CASES: dict[str, tuple[str, str, int]] = {
    "a loop asleep": ("uvicorn", f"/block?seconds={BUSY}", 1),
    "a loop that computes": ("uvicorn", f"/block?seconds={BUSY}&compute", 1),
    "a loop asleep in Gunicorn": ("gunicorn asgi", f"/block?seconds={BUSY}", 1),
    "40 tokens of the thread pool": ("uvicorn", f"/occupy?seconds={BUSY}", 60),
    "8 threads of gthread": ("gunicorn gthread, preloaded", f"/?seconds={BUSY}", 32),
    "a sync worker": ("our adapter, sync", f"/?seconds={BUSY}", 1),
    "a hub of gevent": ("gunicorn gevent", f"/?seconds={BUSY}&compute", 1),
}


@pytest.mark.parametrize("case", CASES)
def test_while_the_app_is_busy(case: str, serve: Callable[[Server], Server]):
    """The loop blocked, or every thread taken: all three answer 200, long before the app does."""
    kind, path, clients = CASES[case]
    server, port = launch(kind)
    serve(server)
    until(lambda: port.status() == 200)
    with asking(server, path, clients):
        time.sleep(0.2)
        assert slowest(port, BUSY - 0.8) < WIDE


def test_under_overload(serve: Callable[[Server], Server]):
    """Five times what the server can bear: the probes do not queue behind it."""
    server, port = launch("uvicorn")
    serve(server)
    until(lambda: port.status() == 200)
    over = threading.Event()

    def load() -> None:
        while not over.is_set():
            get(server, "/", 30.0)

    clients = [threading.Thread(target=load, daemon=True) for _ in range(30)]
    for client in clients:
        client.start()
    try:
        assert slowest(port, BUSY) < WIDE
    finally:
        over.set()
        for client in clients:
            client.join()


@pytest.mark.parametrize("kind", ["uvicorn", "our adapter, asgi"])
def test_a_loop_that_is_stuck_for_too_long(kind: str, serve: Callable[[Server], Server]):
    """Fails liveness and nothing else, whichever worker it is in, and only until it turns again."""
    server, port = launch(kind, health_stuck_after="1")
    serve(server)
    until(lambda: port.status() == 200)
    assert port.status("/livez") == 200
    with asking(server, "/block?seconds=3"):
        took = until(lambda: port.status("/livez") == 503)
        assert took > 0.7
        answer = port.ask("/livez")
        assert answer is not None
        assert answer.body == b"stuck"
        assert port.status("/readyz") == 200
    until(lambda: port.status("/livez") == 200)


def test_never_is_never(serve: Callable[[Server], Server]):
    """With 0, a loop may be stuck for as long as it likes."""
    server, port = launch("uvicorn", health_stuck_after="0")
    serve(server)
    until(lambda: port.status() == 200)
    with asking(server, "/block?seconds=1.5"):
        begun = time.monotonic()
        while time.monotonic() - begun < 1.3:
            assert port.status("/livez") == 200
