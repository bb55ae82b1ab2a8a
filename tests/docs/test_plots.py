"""The pictures of the documentation are small, there, and always the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import plots_model

PAGE = plots_model.PAGE.read_text()
LARGEST = 60_000
QUICK = 1 / 10


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """All pictures, of much shorter runs, twice."""
    folders = [tmp_path_factory.mktemp("pictures") for _ in range(2)]
    return folders, [plots_model.draw(folder, QUICK) for folder in folders]


def test_the_same_code_draws_the_same_pictures(drawn):
    """Time is virtual and seeds are fixed: two runs differ in not a byte."""
    (first, second), (figures, again) = drawn
    assert figures == again
    assert {path.name for path in first.iterdir()} == {
        f"{name}.png" for name in plots_model.DRAWINGS
    }
    for path in first.iterdir():
        assert path.read_bytes() == (second / path.name).read_bytes()


def test_figures_belong_to_each_picture(drawn):
    """Each has a table, and a place in the page for it that has been filled."""
    _, (figures, _) = drawn
    for name, table in figures.items():
        head = table.splitlines()[0]
        assert head in PAGE.partition(f"<!-- {name} -->")[2].partition(f"<!-- /{name} -->")[0]


def test_pictures_of_the_page_are_small():
    """Every picture of the page is there, of at most 60 kB, and drawn by this script."""
    shown = re.findall(r"!\[[^\]]+\]\(pictures/(\w+)\.png\)", PAGE)
    assert sorted(shown) == sorted(plots_model.DRAWINGS)
    for name in shown:
        picture = Path(plots_model.PICTURES / f"{name}.png")
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert picture.stat().st_size <= LARGEST
