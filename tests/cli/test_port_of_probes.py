"""A port of the probes that cannot be opened ends `resilience-mw run` with one line and code 3."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from benchmarks.process import ROOT, free_port

OWNERS = "tests.cli.owners"
SERVERS = [
    ("api", "uvicorn", "1"),
    ("plain", "uvicorn", "2"),
    ("plain", "gunicorn", "1"),
    ("wsgi", "gunicorn", "1"),
    ("bare", "gunicorn", "2"),
]


def run(*arguments: str) -> tuple[int, str]:
    """Run the command until it ends by itself; return its code and what it said."""
    line = [sys.executable, "-m", "resilience_mw", "run", *arguments]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(("app", "server", "workers"), SERVERS)
def test_the_port_of_the_server(app, server, workers):
    """Which `check` calls an error as well."""
    port = str(free_port())
    line = [f"{OWNERS}:{app}", "--server", server, "--workers", workers]
    code, said = run(*line, "--port", port, "--health-port", port)
    assert code == 3
    assert "Traceback" not in said or "coverage/control.py" in said  # what measures us
    assert "health.port must" in said
    assert f"{port}" in said


@pytest.mark.parametrize(("app", "server", "workers"), SERVERS)
def test_a_port_that_is_taken(app, server, workers):
    """By a stranger."""
    with socket.create_server(("0.0.0.0", 0)) as taken:
        port = str(taken.getsockname()[1])
        line = [f"{OWNERS}:{app}", "--server", server, "--workers", workers]
        code, said = run(*line, "--port", str(free_port()), "--health-port", port)
    assert code == 3
    assert "Traceback" not in said or "coverage/control.py" in said  # what measures us
    assert f"health.port must be free, or 0 = off, got '0.0.0.0', port {port}" in said
