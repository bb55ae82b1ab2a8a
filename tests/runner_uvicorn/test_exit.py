"""What the app, or a library that it uses, wants done when the process ends."""

from __future__ import annotations

import signal
import time

import pytest

from benchmarks.process import Server

from .client import launch, times


def wait_for_serving(server: Server, number: int) -> None:
    """Wait until so many processes have started the app."""
    until = time.monotonic() + 20.0
    while server.output().count("Application startup complete") < number:
        assert time.monotonic() < until, server.output()
        time.sleep(0.02)


@pytest.mark.parametrize("workers", [1, 2])
def test_exit_functions_run_in_every_process(serve, workers):
    """As spans, reports and coverage are written then: also in a worker, which was forked."""
    server = serve(launch(*times(), f"--workers={workers}", app="parting"))
    for number in range(1, workers + 1):
        wait_for_serving(server, number)
    server.signal(signal.SIGTERM)
    assert server.wait(10) == 0
    assert server.output().count("farewell of a process that served") == workers
