"""Who is let in first: pinned, uniform, and never taken back by a larger share."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resilience_mw import RolloutRule
from resilience_mw.core.rollout.hashing import PLACES, place, places_of

PINNED = {
    ("favourites", "web-1"): 2247,
    ("favourites", "web-17"): 978,
    ("favourites", "user-1"): 4959,
    ("favourites", "ü"): 89,
    ("favourites", ""): 6516,
}

keys = st.text(max_size=40)
percents = st.integers(0, PLACES).map(lambda places: places / 100)


@pytest.mark.parametrize(("rule", "key"), PINNED)
def test_places_never_change(rule: str, key: str):
    """A key keeps its place in every version: a user who saw the new page goes on seeing it."""
    assert place(rule, key) == PINNED[rule, key]


def test_places_do_not_depend_on_the_process():
    """Another interpreter with another hash seed has the same places."""
    code = (
        "from resilience_mw.core.rollout.hashing import place;"
        "print([place('favourites', key) for key in ('web-1', 'web-17', 'user-1')])"
    )
    for seed in ("0", "1"):
        ran = subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": "."},
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert ran.stdout.strip() == "[2247, 978, 4959]"


@pytest.mark.parametrize("name", ["web-{}", "{}", "10.0.0.{}", "shop{}.example.org"])
def test_places_are_uniform(name: str):
    """Chi-square over 100 bins, for names that differ only in a number."""
    count, bins = 20_000, [0] * 100
    for number in range(count):
        bins[place("favourites", name.format(number)) // 100] += 1
    expected = count / 100
    chi_square = sum((found - expected) ** 2 / expected for found in bins)
    # 99 degrees of freedom: beyond these two in one case of 10,000 each. The names are fixed.
    assert 54 < chi_square < 161


def test_two_rules_let_different_keys_in():
    """Whoever meets the first new page first does not meet all of them first."""
    names = [f"user-{number}" for number in range(10_000)]
    first = {name for name in names if place("one", name) < 1000}
    second = {name for name in names if place("two", name) < 1000}
    assert 50 < len(first & second) < 150


@given(rule=st.from_regex(r"[a-z]{1,8}", fullmatch=True), key=keys, low=percents, high=percents)
def test_a_larger_share_only_adds(rule: str, key: str, low: float, high: float):
    """Who is in at a share is in at every larger one."""
    low, high = sorted((low, high))
    switch = RolloutRule(rule, path="/")
    assert switch.includes(key, low) <= switch.includes(key, high)


@given(key=st.text(alphabet=st.characters(), max_size=20))
def test_the_two_ends_are_certain(key: str):
    """0 lets nobody in, 100 everybody, whatever a key is made of, lone surrogates too."""
    switch = RolloutRule("r", path="/")
    assert not switch.includes(key, 0)
    assert switch.includes(key, 100)


@given(places=st.integers(0, PLACES))
def test_a_step_is_a_hundredth_of_a_percent(places: int):
    """The share of a percentage is exact, though 0.01 has no exact float."""
    assert places_of(places / 100) == places


@pytest.mark.parametrize(("percent", "places"), [(-1, 0), (200, PLACES), (1e9, PLACES)])
def test_a_share_beyond_the_ends_is_an_end(percent: float, places: int):
    """Whatever a store says, nothing breaks."""
    assert places_of(percent) == places
