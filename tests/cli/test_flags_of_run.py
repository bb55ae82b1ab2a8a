"""Flags of `resilience-mw run` count for apps that protect themselves, on every server."""

from __future__ import annotations

import http.client
import sys
from functools import partial

import pytest

from benchmarks.process import free_port
from benchmarks.servers import start

RUN = [sys.executable, "-m", "resilience_mw", "run"]
OWNERS = "tests.cli.owners"


def with_port(line, port):
    return [*line, "--port", str(port)]


def status(port: int, path: str) -> int:
    """Return what is answered on a port of this host."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("server", ["uvicorn", "gunicorn"])
def test_a_flag_beats_what_the_code_says(serve, server, workers):
    """It is resolved where the app protects itself, in each worker."""
    port = free_port()
    line = [*RUN, f"{OWNERS}:coded", "--server", server, "--workers", workers]
    line += ["--health-port", str(port), "--health-startup-path", "/flagged"]
    line += ["--runner-drain-delay", "0"]
    running = serve(start(partial(with_port, line)))
    assert status(port, "/flagged") == 200
    assert status(port, "/coded") == 404
    assert "without effect" not in running.output()


def test_a_file_counts_on_gunicorn_and_below_flags(serve, tmp_path):
    """For a WSGI app that protects itself."""
    port = free_port()
    path = tmp_path / "resilience.toml"
    path.write_text(f'[health]\nport = {port}\nready_path = "/file"\nlive_path = "/file-live"\n')
    line = [*RUN, f"{OWNERS}:wsgi", "--config-file", str(path), "--health-ready-path", "/flag"]
    serve(start(partial(with_port, [*line, "--runner-drain-delay", "0"])))
    assert status(port, "/flag") == 200
    assert status(port, "/file-live") == 200
    assert status(port, "/file") == 404


@pytest.mark.parametrize(
    ("server", "workers"), [("uvicorn", "1"), ("uvicorn", "2"), ("gunicorn", "2")]
)
def test_a_flag_that_reaches_no_guard_is_told_once(serve, server, workers):
    """Whatever number of workers there are."""
    line = [*RUN, f"{OWNERS}:probes", "--server", server, "--workers", workers]
    line += ["--limit-max-concurrent-requests", "3", "--health-ready-path", "/ready"]
    running = serve(start(partial(with_port, [*line, "--runner-drain-delay", "0"])))
    running.stop()
    output = running.output()
    assert output.count("without effect") == 1
    assert "without effect: --limit-max-concurrent-requests: the app's own code" in output
