"""What the parts of a roll-out may import: what is below them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import resilience_mw

PACKAGE = Path(resilience_mw.__file__).parent
ABOVE = {"protect", "runner", "cli", "django", "flask", "starlette"}


@pytest.mark.parametrize(
    "path", sorted((PACKAGE / "rollout").rglob("*.py")), ids=lambda path: path.name
)
def test_nothing_above_is_imported(path: Path):
    """Runners and commands use a roll-out, and it uses none of them."""
    level = len(path.relative_to(PACKAGE).parts)
    found = {
        (node.module or "").split(".")[0]
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.level == level
    }
    assert found & ABOVE == set()
