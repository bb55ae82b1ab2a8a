"""Who may wait under WSGI, where waiting costs a thread."""

from __future__ import annotations

import threading
import time

import pytest

from resilience_mw import Backpressure, Config, protect
from resilience_mw.wsgi import BackpressureMiddleware


def statuses_of_two(build):
    """Return what a second request gets while the first runs, and how it ended."""
    entered, go = threading.Event(), threading.Event()
    seen = []

    def app(environ, start_response):
        entered.set()
        go.wait(10.0)
        start_response("200 OK", [])
        return [b""]

    guard = build(app)

    def call():
        body = guard({"REQUEST_METHOD": "GET", "PATH_INFO": "/"}, lambda s, h: seen.append(s))
        body.close() if hasattr(body, "close") else None

    threads = [threading.Thread(target=call) for _ in range(2)]
    threads[0].start()
    assert entered.wait(10.0)
    threads[1].start()
    until = time.monotonic() + 10.0
    while not (guard.snapshot().queued or seen) and time.monotonic() < until:
        time.sleep(0.005)
    go.set()
    for thread in threads:
        thread.join(10.0)
    return sorted(seen)


@pytest.mark.parametrize(
    "build",
    [
        lambda app: protect(app, Config(backpressure=Backpressure(max_limit=1))),
        lambda app: BackpressureMiddleware(app, max_limit=1),
    ],
    ids=["protect", "middleware"],
)
def test_nobody_waits_for_our_law_unless_asked(build):
    """What waits keeps one of the threads that the others wait for."""
    assert statuses_of_two(build) == ["200 OK", "503 Service Unavailable"]


@pytest.mark.parametrize("options", [{"queue_size": 5, "max_wait": 20}, {"law": "aimd"}])
def test_who_asks_for_a_queue_has_one(options):
    """A size that was set holds; the Node law queues as it always did."""
    config = Config(backpressure=Backpressure(max_limit=1, **options))
    assert statuses_of_two(lambda app: protect(app, config)) == ["200 OK", "200 OK"]
