"""The pages under docs/ say nothing that is not so."""

from __future__ import annotations

import ast
import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks.filling import fill, with_outputs
from resilience_mw.core import DeadlineSnapshot, GateSnapshot, HealthSnapshot, Snapshot

DOCS = Path(__file__).parents[2] / "docs"
DECIDES = (DOCS / "how-it-decides.md").read_text()
PAGES = sorted(DOCS.glob("*.md"))
PARTS = (HealthSnapshot, DeadlineSnapshot, GateSnapshot)
REASONS = {
    "limit",
    "queue_full",
    "queue_timeout",
    "waited",
    "saturated",
    "deadline",
    "draining",
}


def rows(head):
    """Return the first cells of the table whose head begins with ``head``."""
    table = DECIDES.partition(f"| {head} |")[2].partition("\n\n")[0]
    cells = [line.split("|")[1] for line in table.splitlines()[2:]]
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


def fields(*kinds):
    """Return the names of all fields."""
    return {field.name for kind in kinds for field in dataclasses.fields(kind)}


@pytest.mark.parametrize("name", ["testing", "fastapi", "flask", "wsgi", "health", "rollout"])
def test_examples_run_and_print_what_is_shown(name):
    """Each Python block of these pages runs, and prints the text block below it."""
    page = (DOCS / f"{name}.md").read_text()
    assert with_outputs(page) == page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_all_python_is_python(page):
    """Every Python block compiles."""
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        ast.parse(block)


def test_the_priority_example_runs():
    """The classifier of the page sorts requests as it says."""
    namespace: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", DECIDES, re.DOTALL):
        exec(block, namespace)
    assert namespace["config"].backpressure.priority is namespace["important"]


@pytest.mark.parametrize("name", ["django", "fastapi", "flask", "wsgi"])
def test_integration_pages_have_the_same_parts(name):
    """Whoever has read one of them finds their way in the others."""
    page = (DOCS / f"{name}.md").read_text()
    assert re.findall(r"^## (.*)$", page, re.MULTILINE) == ["Install", "Wrap", "Configure", "Know"]


def test_every_reason_is_explained():
    """The table of reasons has those that a refusal may have."""
    assert rows("reason") == REASONS


def test_every_field_of_a_snapshot_is_explained():
    """The table of fields has all of them and nothing else."""
    assert rows("field") == fields(Snapshot, *PARTS)


def test_the_snapshot_shown_has_the_fields_there_are():
    """The example is what this version would show."""
    shown = json.loads(DECIDES.partition("```json\n")[2].partition("```")[0])
    assert set(shown) == fields(Snapshot)
    assert [set(part) for part in shown["policies"]] == [fields(kind) for kind in PARTS]
    assert set(shown["refused"]) <= REASONS
    assert shown["elu"] > 0.9


def test_a_page_is_filled_between_its_markers(tmp_path):
    """What stands around the markers stays, and a page without them is refused."""
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- here -->\nold\n<!-- /here -->\nafter\n")
    for _ in range(2):
        fill(page, "here", "new")
        assert page.read_text() == "before\n<!-- here -->\nnew\n<!-- /here -->\nafter\n"
    with pytest.raises(ValueError, match=r"page\.md must have <!-- there -->"):
        fill(page, "there", "new")
