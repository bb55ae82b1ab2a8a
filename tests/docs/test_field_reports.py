"""Each report of docs/field-reports.md has the test that the page names."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "field-reports.md").read_text()
ROWS = re.findall(r"^\| (\d+) \|.*\| `(\S+)::(\w+)` \|$", PAGE, re.MULTILINE)


def test_every_row_names_a_test():
    """None is without."""
    assert len(ROWS) == len(re.findall(r"^\| \d+ \|", PAGE, re.MULTILINE)) > 10


@pytest.mark.parametrize(("number", "file", "name"), ROWS, ids=lambda value: str(value)[-40:])
def test_the_test_is_there(number, file, name):
    """A test function, or a state machine, at the top of its module."""
    module = ast.parse((ROOT / file).read_text())
    functions = {node.name for node in module.body if isinstance(node, ast.FunctionDef)}
    names = {
        target.id
        for node in module.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    assert name in functions | names
