"""What docs/rollout-guard.md says of the options is so."""

from __future__ import annotations

import dataclasses
import re

from benchmarks.process import ROOT
from benchmarks.rollout_guard import message, needed
from resilience_mw import RolloutGuard

PAGE = (ROOT / "docs" / "rollout-guard.md").read_text()


def test_the_options_are_the_declaration():
    """Their names, and their defaults."""
    shown = dict(re.findall(r"^\| `(\w+)` \| ([\d.]+) \|", PAGE, re.MULTILINE))
    assert {name: float(value) for name, value in shown.items()} == {
        field.name: field.default for field in dataclasses.fields(RolloutGuard)
    }


def test_figures_that_need_no_chance_are_those_of_the_script():
    """The message, and how many failures it takes."""
    assert message() in PAGE
    assert needed() in PAGE
