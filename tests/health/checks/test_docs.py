"""The page about checks says what is so."""

from __future__ import annotations

import re
from pathlib import Path

import django
import pytest

from resilience_mw import health
from resilience_mw.health import Check, from_spec

PAGE = (Path(__file__).parents[3] / "docs" / "health-checks.md").read_text()
PACKAGE = Path(health.__file__).parent
SOURCES = ("connecting", "response", "upstream", "redis", "django", "disk", "memory", "bridge")

with pytest.MonkeyPatch.context() as patch:
    patch.setenv("DJANGO_SETTINGS_MODULE", "tests.django.project.settings")
    django.setup()


def rows(head: str) -> list[list[str]]:
    """Return the cells of the table whose head begins with ``head``."""
    table = PAGE.partition(f"| {head} |")[2].partition("\n\n")[0]
    return [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]


def test_examples_run():
    """Each Python block by itself, with its certificates taken from the system."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        exec(block, {})


def test_texts_are_what_the_table_says():
    """Each example in it."""
    table = rows("text")
    assert len(table) == 8
    for texts, kind in table:
        for text in re.findall(r"`([^`]+)`", texts):
            if text != "module:attribute":
                assert f"`{type(from_spec(text)).__name__}`" == kind


def test_every_check_is_listed():
    """All that the package offers."""
    listed = {re.findall(r"`(\w+)\(", row[0])[0] for row in rows("check")}
    offered = {
        name
        for name in health.__all__
        if isinstance(found := getattr(health, name), type) and issubclass(found, Check)
    }
    assert listed == offered


def test_every_reason_is_explained():
    """Those that stand in the code, and no others."""
    code = "\n".join((PACKAGE / f"{name}.py").read_text() for name in SOURCES)
    raised = set(re.findall(r'CheckFailed\("([^"]+)"\)', code))
    raised |= set(re.findall(r'^    \([\w.]+, "([^"]+)"\),$', code, re.MULTILINE))
    raised |= set(re.findall(r'if error\.partial else "(\w+)"', code))
    raised |= {"error", "cut short", "status 500"}
    # What django-health-check calls its exceptions.
    raised |= {"unavailable", "unexpected result", "warning", "unknown error"}
    explained = {name for row in rows("reason") for name in re.findall(r"`([^`]+)`", row[0])}
    assert explained == raised
