from __future__ import annotations

import subprocess
import sys

from benchmarks.process import ROOT

PNG = b"\x89PNG\r\n\x1a\n"


def demo(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "examples.demo", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


def test_the_demo_shows_both_sides(tmp_path):
    """It measures, shows its progress in plain text, compares, and leaves a picture."""
    arguments = ["--handler", "io", "--protect", "limit:10", "--seconds", "1.5"]
    done = demo(*arguments, "--directory", str(tmp_path))
    assert done.returncode == 0, done.stderr
    out = done.stdout
    assert "\033" not in out
    assert out.index("measuring the capacity") < out.index("unprotected") < out.index("  protected")
    assert out.count("  1 s   asked") == 2
    rows = {
        line[:26].strip(): line[26:].split() for line in out.splitlines() if "asked" not in line
    }
    assert int(rows["200 in all"][0]) > 0
    assert int(rows["200 in all"][1]) > 0
    assert rows["refused with 503"][0] == "0"
    assert int(rows["refused with 503"][1]) > 0
    picture = tmp_path / "demo-io.png"
    assert str(picture) in out
    assert picture.read_bytes().startswith(PNG)


def test_an_unknown_handler_is_told_in_a_line():
    """A slip names what there is."""
    done = demo("--handler", "nothing")
    assert done.returncode == 2
    assert "choose from" in done.stderr
