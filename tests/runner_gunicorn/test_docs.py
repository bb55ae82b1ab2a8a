"""The table of what worker classes cannot do is what `check` says."""

from __future__ import annotations

from benchmarks.process import ROOT
from resilience_mw.runner.gunicorn.families import FAMILIES

HEADING = "## What a worker class cannot do"


def test_the_table_holds_what_each_worker_class_cannot_do():
    """Cell by cell; whatever is not said there works."""
    text = (ROOT / "docs" / "gunicorn.md").read_text().partition(HEADING)[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    header, _, *cells = rows
    names = ["other" if name == "other classes" else name for name in header[1:]]
    table = {
        (row[0].strip("`"), name): cell
        for row in cells
        for name, cell in zip(names, row[1:], strict=True)
    }
    assert names == [family.name for family in FAMILIES]
    said = {(option, family.name): why for family in FAMILIES for option, why in family.cannot}
    assert {key: cell for key, cell in table.items() if cell != "yes"} == said
