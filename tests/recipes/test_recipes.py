"""The table of docs/other-servers.md is what happens."""

from __future__ import annotations

import pytest

from benchmarks.process import ROOT

from .observing import OBSERVED
from .recipes import NAMES, SERVERS

PAGE = (ROOT / "docs" / "other-servers.md").read_text()


def claimed(name: str) -> dict[str, str]:
    """Return the column of a server."""
    text = PAGE.partition("<!-- outcomes -->")[2].partition("<!-- /outcomes -->")[0]
    lines = [line.strip("|").split("|") for line in text.strip().splitlines()]
    header, _, *rows = [[cell.strip() for cell in line] for line in lines]
    column = [title.lower() for title in header].index(name)
    return {row[0]: row[column].strip("*") for row in rows}


@pytest.mark.parametrize("look", OBSERVED, ids=lambda look: look.__name__)
@pytest.mark.parametrize("name", NAMES)
def test_each_cell_is_what_clients_see(name, look):
    """On the real server, with the script that the page offers."""
    seen = look(name)
    assert seen == {what: claimed(name)[what] for what in seen}


@pytest.mark.parametrize("name", NAMES)
def test_no_cell_is_without_a_test(name):
    """Whatever the table claims is looked at."""
    looked_at = {
        *("a client that sends nothing", "half a head", "a head, dripped", "a body that stalls"),
        *("a body, dripped", "an idle connection", "`/readyz` at SIGTERM", "`/livez` meanwhile"),
        *("a new connection, during the delay", "a request on an idle connection, +0.02 s"),
        *("a request on an idle connection, +0.5 s", "half a head at SIGTERM, then the rest"),
        *("a new connection, after the delay", "an idle connection, after the delay"),
        *("a request in flight", "a stream in flight", "a websocket", "the exit code"),
        *("a request longer than `shutdown_timeout`", "the exit code then"),
        *("the app's own shutdown then", "a second SIGTERM"),
    }
    assert set(claimed(name)) == looked_at


@pytest.mark.parametrize("name", NAMES)
def test_each_script_is_linked_and_started_as_shown(name):
    """The page names it, and so does its own docstring."""
    script = SERVERS / f"serve_{name}.py"
    assert f"(../examples/servers/{script.name})" in PAGE
    shown = next(line.split("`")[1] for line in PAGE.splitlines() if f"[{script.name}]" in line)
    assert shown in script.read_text()
