"""At SIGTERM readiness turns out of band at once, while the port and the server still answer."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable

import pytest

from benchmarks.process import Server
from benchmarks.talk import get

from .launching import launch
from .probing import until

OURS = [
    "our runner",
    "our runner, two workers",
    "our adapter, sync",
    "our adapter, gthread",
    "our adapter, gevent",
    "our adapter, asgi",
    "our adapter, uvicorn-worker",
]


@pytest.mark.parametrize("kind", OURS)
def test_readiness_turns_before_the_server_stops_accepting(
    kind: str, serve: Callable[[Server], Server]
):
    """Far within the drain delay; liveness holds, and the app still answers."""
    server, port = launch(kind, runner_drain_delay="2")
    serve(server)
    until(lambda: port.status() == 200)
    server.signal(signal.SIGTERM)
    assert until(lambda: port.status() == 503) < 1.0
    assert port.status("/livez") == 200
    assert port.status("/startupz") == 200
    assert get(server, "/?seconds=0").status == 200
    assert server.wait(20.0) == 0
    assert port.ask() is None


def test_it_turns_although_the_loop_is_blocked(serve: Callable[[Server], Server]):
    """The signal is heard between two bytecodes, long before the loop comes round."""
    server, port = launch("our runner", runner_drain_delay="3")
    serve(server)
    until(lambda: port.status() == 200)
    client = threading.Thread(target=get, args=(server, "/block?seconds=2&compute", 30.0))
    client.start()
    time.sleep(0.3)
    server.signal(signal.SIGTERM)
    assert until(lambda: port.status() == 503) < 1.0
    assert client.is_alive()
    client.join()
    assert server.wait(20.0) == 0


def test_a_reload_turns_nothing(serve: Callable[[Server], Server]):
    """When Gunicorn replaces its workers, no probe hears of it; the port is shut for a moment.

    Old workers end at once, and new ones have to import the app first.
    """
    server, port = launch("our adapter, gthread")
    serve(server)
    until(lambda: port.status() == 200)
    before = {one.pid for one in server.workers()}
    server.signal(signal.SIGHUP)
    refused = 0
    begun = time.monotonic()
    while before & {one.pid for one in server.workers()} and time.monotonic() - begun < 20:
        status = port.status()
        assert status in (0, 200)
        refused += status == 0
        time.sleep(0.01)
    assert not before & {one.pid for one in server.workers()}
    assert until(lambda: port.status() == 200) < 1.0
    assert refused < 200
