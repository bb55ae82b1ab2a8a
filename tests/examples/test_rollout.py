"""The walk through examples/rollout/README.md, on a real server."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.process import ROOT
from tests.servers import uvicorn

EXAMPLE = ROOT / "examples" / "rollout"


def steps(text: str) -> list[tuple[str, str]]:
    """Return each command of the page, and what is shown below it."""
    blocks = "".join(re.findall(r"```console\n(.*?)```", text, re.DOTALL))
    return re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", blocks, re.MULTILINE)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_walk_goes_as_shown(serve, tmp_path: Path):
    """Each command prints what stands below it, in order."""
    shutil.copy(EXAMPLE / "shop.py", tmp_path)
    store = {"RESILIENCE_ROLLOUT_STORE": "file:rollout.toml"}
    server = serve(uvicorn("shop:app", cwd=tmp_path, env=store))
    environment = {
        **os.environ,
        **store,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    found = steps((EXAMPLE / "README.md").read_text())
    assert len(found) >= 10
    for command, shown in found:
        ran = subprocess.run(
            command.replace("http://127.0.0.1:8000", server.url),
            shell=True,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (ran.stdout, ran.stderr) == (shown, ""), command
