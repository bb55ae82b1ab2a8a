"""The README says nothing that is not so."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from resilience_mw.config import markdown, options

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_options_table_is_the_declaration() -> None:
    """The table equals the output of `resilience-mw options --format markdown`."""
    table = README.partition("<!-- options -->")[2].partition("<!-- /options -->")[0]
    assert table.strip() == markdown(options()).strip()


def test_the_python_examples_are_python() -> None:
    """Every Python block compiles."""
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) >= 6
    for block in blocks:
        ast.parse(block)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link in the documentation names a file that is there."""
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
