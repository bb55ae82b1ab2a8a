from __future__ import annotations

import json
import subprocess
import sys

import pytest

from benchmarks.load.__main__ import main
from benchmarks.process import ROOT
from benchmarks.servers import uvicorn


@pytest.fixture(scope="module")
def url():
    with uvicorn("tests.load.hello:app") as server:
        yield server.url


def test_one_run_from_the_command_line(url, tmp_path):
    """`python -m benchmarks.load` prints the summary, its progress, and writes the figures."""
    document = tmp_path / "run.json"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "benchmarks.load", f"{url}/x"),
            *("--phase", "50x0.5", "--phase", "100x0.7"),
            *("--probe", "/livez", "--probe-new", "--progress", "--json", str(document)),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "--- load\noffered     95 in 1.2 s" in done.stdout
    assert "--- probe\noffered     6" in done.stdout
    assert "unanswered 0" in done.stderr
    figures = json.loads(document.read_text())
    assert figures["load"]["outcomes"] == {"200": 95}
    assert len(figures["load"]["slots"]) == 2


def test_capacity_from_the_command_line(url, capsys):
    """`--connections` measures the closed loop."""
    assert main([url, "--connections", "2", "--seconds", "0.3", "--no-uvloop"]) == 0
    out = capsys.readouterr().out
    assert "/s with 2 connections" in out
    assert "others      0" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["http://10.1.2.3:80/"], "error: target must be a loopback address, got '10.1.2.3'\n"),
        (["http://127.0.0.1:9/", "--rate", "-1"], "error: rate and seconds must be > 0, got -1.0"),
        (["http://127.0.0.1:9/", "--connections", "-1"], "error: connections must be in"),
    ],
)
def test_options_without_sense_are_told_in_a_line(arguments, message, capsys):
    """A wrong option gives one line and exit code 2, not a traceback."""
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert err.startswith(message)
    assert err.count("\n") == 1
