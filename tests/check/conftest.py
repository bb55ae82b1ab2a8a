"""What the tests of `resilience-mw check` get."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.process import ROOT
from resilience_mw.cli import main

APPS = "tests.check.apps"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """No configuration file of anybody's, and no import path left behind."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.delenv("GUNICORN_CMD_ARGS", raising=False)


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str]):
    """Run it with JSON, and return the exit code and the report."""

    def run(app: str, *arguments: str) -> tuple[int, dict[str, Any]]:
        code = main(["check", f"{APPS}:{app}", "--format", "json", *arguments])
        return code, json.loads(capsys.readouterr().out)

    return run
