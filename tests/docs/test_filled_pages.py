"""Pages that benchmarks fill have a place for each table: found out before an hour of measuring."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import rolling_deploy, slow_clients_and_sigterm
from benchmarks.filling import fill, table

PLACES = [
    (rolling_deploy.PAGE, "deploys"),
    *((slow_clients_and_sigterm.PAGE, name) for name in slow_clients_and_sigterm.TABLES),
    *((slow_clients_and_sigterm.OF_GUNICORN, name) for name in slow_clients_and_sigterm.TABLES),
]


@pytest.mark.parametrize(
    ("page", "marker"), PLACES, ids=lambda value: getattr(value, "stem", value)
)
def test_there_is_a_place_for_the_table(page: Path, marker: str, tmp_path: Path):
    """Between two markers, once."""
    text = page.read_text()
    assert text.count(f"<!-- {marker} -->") == text.count(f"<!-- /{marker} -->") == 1
    copy = tmp_path / page.name
    copy.write_text(text)
    fill(copy, marker, table(rolling_deploy.HEAD, [["x"] * len(rolling_deploy.HEAD)]))
    assert "| x | x |" in copy.read_text()
