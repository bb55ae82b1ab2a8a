"""What docs/rollout-export.md shows is what is printed."""

from __future__ import annotations

import re
from typing import Any

from benchmarks.process import ROOT
from resilience_mw.cli.exports.nginx import command
from resilience_mw.rollout.export import Plan, nginx

PAGE = (ROOT / "docs" / "rollout-export.md").read_text()


def test_the_example_is_printed():
    """Each line of it, for the rules that stand above it."""
    namespace: dict[str, Any] = {}
    exec(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0], namespace)
    printed = {line.strip() for line in nginx(Plan(namespace["RULES"], {}, "o:1", "n:1", "web-1"))}
    (shown,) = re.findall(r"```nginx\n(.*?)```", PAGE, re.DOTALL)
    assert {line.strip() for line in shown.splitlines()} <= printed


def test_all_options_are_explained():
    """Those beside the two stacks, in the table."""
    flags = {name for option in command.params for name in option.opts if name[:2] == "--"}
    assert flags - {"--old", "--new"} == set(re.findall(r"^\| `(--[a-z-]+)", PAGE, re.MULTILINE))
