"""What the app, or a library that it uses, wants done when the process ends."""

from __future__ import annotations

import signal

import pytest

from .client import launch, times


@pytest.mark.parametrize("workers", [1, 2])
def test_exit_functions_run_in_every_process(serve, workers):
    """As spans, reports and coverage are written then: also in a worker, which was forked."""
    server = serve(launch(*times(), f"--workers={workers}", app="parting"))
    server.signal(signal.SIGTERM)
    assert server.wait(10) == 0
    assert server.output().count("farewell of a process that served") == workers
