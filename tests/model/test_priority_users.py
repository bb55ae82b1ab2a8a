"""Users in a steady overload: one fate each for a minute, and not always the same one's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from resilience_mw.testing import Result
from tests.model.ranked import Scenario, admitted
from tests.model.workloads import KEPT

USERS = 1500
OURS = Random(4).choices(range(USERS), k=60_000)
"""Whose request is which."""
NORMAL_ONLY = (0.0, 100.0)


def user(request: Any) -> str:
    """Tell whose request it is."""
    return f"user-{OURS[request.number]}"


def fates(result: Result, begin: float, end: float) -> Mapping[int, set[bool]]:
    """Return for each user whether requests were served, refused, or both."""
    seen: dict[int, set[bool]] = defaultdict(set)
    for outcome, number in zip(result.outcomes, OURS, strict=False):
        if begin <= outcome.arrived < end:
            seen[number].add(outcome.status == 200)
    return seen


@pytest.mark.parametrize("name", ["compute", "wsgi compute"])
def test_a_user_sees_one_fate_for_a_minute(name: str):
    """At 3x, 19 of 20 users are served wholly or not at all, and others in the next minute."""
    case = next(case for case in KEPT if case.name == name)
    scenario = Scenario(case, [(180, 3)], NORMAL_ONLY)
    result, _ = scenario.ranked(user)
    minutes = [fates(result, begin, end) for begin, end in ((15, 60), (62, 120), (122, 180))]
    single = [sum(len(seen) == 1 for seen in minute.values()) for minute in minutes]
    assert sum(single) >= 0.95 * sum(map(len, minutes))
    lucky = [{number for number, seen in minute.items() if seen == {True}} for minute in minutes]
    for minute in lucky:
        assert 0.2 * USERS <= len(minute) <= 0.4 * USERS
    # A third would be lucky again by chance.
    for first, second in pairwise(lucky):
        assert len(first & second) <= 0.55 * len(first)
    assert len(set.union(*lucky)) >= 0.55 * USERS
    summary = result.summary(15, 180)
    assert summary.goodput >= 0.85 * scenario.most
    assert summary.unanswered == 0
    assert summary.p99 <= 0.5


def test_a_heavy_user_is_served_or_refused_like_any_other():
    """Who sends a tenth of everything moves the line, but others still see one fate."""
    heavy = Random(5)
    numbers = [0 if heavy.random() < 0.1 else number for number in OURS]
    scenario = Scenario(KEPT[0], [(120, 3)], NORMAL_ONLY)
    result, _ = scenario.ranked(lambda request: numbers[request.number])
    outcomes: dict[int, set[bool]] = defaultdict(set)
    for outcome, number in zip(result.outcomes, numbers, strict=False):
        if 70 <= outcome.arrived < 120:
            outcomes[number].add(outcome.status == 200)
    assert sum(len(seen) == 1 for seen in outcomes.values()) >= 0.9 * len(outcomes)
    assert result.summary(70, 120).goodput >= 0.8 * scenario.most


def test_classes_come_before_users():
    """A user's critical requests are served while its sheddable ones are refused."""
    scenario = Scenario(KEPT[0], [(2, 0.5), (20, 3)], (0.3, 0.5))
    result, _ = scenario.ranked(user)
    assert admitted(result, 0, 2, 22) >= 0.97
    assert admitted(result, 1, 2, 22) >= 0.9
    assert admitted(result, 2, 2, 22) <= 0.12


def test_a_line_that_is_held_still_follows_the_load():
    """A jump is met at once, and two seconds after the pressure nobody is refused by rank."""
    steps = [(2, 0.5), (10, 2), (10, 5), (5, 0.5)]
    scenario = Scenario(KEPT[0], steps, (0.3, 0.4))
    result, gate = scenario.ranked(user)
    for begin in (4, 14):
        assert admitted(result, 0, begin, begin + 8) >= 0.95
        assert result.summary(begin, begin + 8).goodput >= 0.85 * scenario.most
    assert [o for o in result.outcomes if o.status == 503 and o.arrived > 24] == []
    assert not gate.cutoff.active


def test_without_users_a_share_is_spread_evenly():
    """Of any hundred requests in a row about as many are refused, none for its number."""
    scenario = Scenario(KEPT[0], [(2, 0.5), (20, 3)], NORMAL_ONLY)
    result, _ = scenario.ranked()
    refused = [outcome.status == 503 for outcome in result.outcomes if 5 <= outcome.arrived < 22]
    share = sum(refused) / len(refused)
    assert share == pytest.approx(2 / 3, abs=0.03)
    hundreds = [sum(refused[begin : begin + 100]) for begin in range(0, len(refused) - 99, 100)]
    assert min(hundreds) >= 35
    assert max(hundreds) <= 95
    by_user: dict[int, list[bool]] = defaultdict(list)
    first = len(result.outcomes) - len([o for o in result.outcomes if o.arrived >= 5])
    for number, fate in zip(OURS[first:], refused, strict=False):
        by_user[number % 20].append(fate)
    for fates_ in by_user.values():
        assert sum(fates_) / len(fates_) == pytest.approx(share, abs=0.12)
