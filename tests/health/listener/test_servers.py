"""Every server that we know of answers on the port, for all of its workers."""

from __future__ import annotations

import os
import signal

import pytest

from .launching import KINDS, launch
from .probing import until


@pytest.mark.parametrize("kind", KINDS)
def test_the_three_probes(kind, serve):
    """They turn 200 once it serves, and the port closes with the server."""
    server, port = launch(kind)
    serve(server)
    for path in ("/startupz", "/livez", "/readyz"):
        until(lambda path=path: port.status(path) == 200)
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
            until(lambda pid=pid: len(_others(server, workers)) > 0)
    until(lambda: port.status() == 200)


def _others(server, workers):
    return [one for one in server.workers() if one.pid not in workers]
