"""Every server that we know of answers on the port, for all of its workers."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.process import HOST, Server, free_port
from benchmarks.servers import start

from .launching import KINDS, WSGI, launch
from .probing import Port, until


@pytest.mark.parametrize("kind", KINDS)
def test_the_three_probes(kind, serve):
    """They turn 200 once it serves, and the port closes with the server."""
    server, port = launch(kind)
    serve(server)
    for path in ("/startupz", "/livez", "/readyz"):
        until(lambda path=path: port.status(path) == 200)  # type: ignore[misc]
    assert port.status("/") == 404
    assert server.output().count("answers probes on") <= 1
    server.stop()
    until(lambda: port.ask() is None)


@pytest.mark.parametrize(
    "kind", ["uvicorn, two workers", "gunicorn gthread, preloaded", "our runner, two workers"]
)
def test_a_worker_that_dies_costs_no_probe(kind, serve):
    """Another listens before the next probe comes, whichever it was."""
    server, port = launch(kind)
    serve(server)
    until(lambda: port.status() == 200)
    workers = [one.pid for one in server.workers() if "resource_tracker" not in str(one.cmdline())]
    for pid in workers:
        until(lambda: port.status() == 200)
        os.kill(pid, signal.SIGKILL)
        assert until(lambda: port.status("/livez") == 200) < 2.0
        if pid != workers[-1]:
            until(lambda: len(_others(server, workers)) > 0)
    until(lambda: port.status() == 200)


def _others(server, workers):
    return [one for one in server.workers() if one.pid not in workers]


def test_the_port_survives_an_upgrade(serve: Callable[[Server], Server]):
    """Gunicorn replaces itself (USR2): both masters are one server, whichever ends first."""
    port = Port(free_port())
    # By its own script: started with -m, what replaces it would find its `http` for Python's.
    script = str(Path(sys.executable).with_name("gunicorn"))
    server = start(
        lambda public: [
            *(script, "--bind", f"{HOST}:{public}", "--workers", "2", "--no-control-socket"),
            *("--worker-class", "sync", WSGI),
        ],
        env={"RESILIENCE_HEALTH_PORT": str(port.port), "RESILIENCE_HEALTH_HOST": HOST},
    )
    serve(server)
    until(lambda: port.status() == 200 and len(server.workers()) == 2)
    old = server.workers()
    server.signal(signal.SIGUSR2)
    until(lambda: len(server.workers()) == 5)
    new = [one for one in server.workers() if one not in old]
    assert port.status() == 200
    for worker in old:
        worker.kill()
    until(lambda: port.status() == 200)
    assert "health.port must be free" not in server.output()
    assert all(one.is_running() for one in new)
    server.kill()
