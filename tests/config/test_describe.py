"""The lists of options hold every option, and can be read back."""

from __future__ import annotations

import json
from dataclasses import asdict

from resilience_mw.config import Limit, as_json, markdown, options, table
from resilience_mw.config.describe import Row
from tests.config.spellings import OPTIONS


def test_one_row_for_every_option():
    """In the order of declaration, each with every name it has."""
    rows = options()
    assert [row.name for row in rows] == list(OPTIONS)
    assert rows[0] == Row(
        name="limit.max_concurrent_requests",
        type="integer",
        default="0",
        unit="requests",
        help="Refuse at once above it; 0 = off. Also the hard ceiling of the adaptive limit.",
        env="RESILIENCE_LIMIT_MAX_CONCURRENT_REQUESTS",
        flag="--limit-max-concurrent-requests",
        node="maxConcurrentRequests",
    )
    assert [row.name for row in options([Limit])] == [
        "limit.max_concurrent_requests",
        "limit.exempt",
    ]


def test_defaults_as_people_write_them():
    """Python literals, whole seconds without a fraction, and words for what is derived."""
    defaults = {row.name: row.default for row in options()}
    assert defaults["limit.exempt"] == "()"
    assert defaults["backpressure.enabled"] == "True"
    assert defaults["backpressure.law"] == '"adaptive"'
    assert defaults["backpressure.initial_limit"] == "max_limit"
    assert defaults["backpressure.sample_window"] == "1.0 (aimd), 0.1 (adaptive)"
    assert defaults["backpressure.elu_max"] == "0.95"
    assert defaults["deadline.timeout"] == "30"
    assert defaults["deadline.header"] == "None"
    assert defaults["health.live_path"] == '"/livez"'


def test_types_as_people_call_them():
    """The kind of value, None and choices included."""
    types = {row.name: row.type for row in options()}
    assert types["backpressure.law"] == '"adaptive" or "aimd"'
    assert types["deadline.timeout"] == "number or None"
    assert types["limit.exempt"] == "list of path prefixes"


def test_json_reads_back():
    """The array holds the rows and nothing else."""
    assert json.loads(as_json(options())) == [asdict(row) for row in options()]


def test_markdown_reads_back():
    """Every cell of the table is the value of its row."""
    header, rule, *lines = markdown(options()).splitlines()
    assert header == ("| option | type | default | meaning | environment | flag | Node name |")
    assert set(rule) == set("| -")
    for line, row in zip(lines, options(), strict=True):
        cells = [cell.strip(" `") for cell in line.strip("|").split("|")]
        kind = f"{row.type} ({row.unit})" if row.unit else row.type
        expected = [row.name, kind, row.default, row.help, row.env, row.flag, row.node]
        assert cells == [text.strip("`") for text in expected]


def test_markdown_escapes_the_separator():
    """A bar in a text does not open another column."""
    row = Row("a.b", "x | y", "0", "", "help", "E", "--f", "")
    assert r"| x \| y |" in markdown([row])


def test_table_is_aligned():
    """Every column starts at the same place in every line."""
    lines = table(options()).splitlines()
    assert len(lines) == len(OPTIONS) + 1
    start = lines[0].index("meaning")
    for line, row in zip(lines[1:], options(), strict=True):
        assert line[start:] == row.help
        assert line[start - 2 : start] == "  "
