"""Ranks: classes, users, and callables that misbehave."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resilience_mw.core.ranking import CLASSES, Ranking

from .requests import Request


def always(value: Any) -> Callable[[Any], Any]:
    """Return a callable that says ``value`` of every request."""
    return lambda exchange: value


def raising(error: BaseException) -> Callable[[Any], Any]:
    """Return a callable that raises ``error``."""

    def callable_(exchange: Any) -> Any:
        raise error

    return callable_


class Nameless:
    """A user without a text of its own."""


class Mute:
    """A user whose text cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


def place(user: Any, now: float = 0.0) -> float:
    """Return the place of a user in a minute."""
    return Ranking(always("critical"), always(user)).rank(Request(), now)


@pytest.mark.parametrize(
    ("name", "level"), [("critical", 0), ("normal", 1), ("sheddable", 2), (None, 1)]
)
def test_a_class_is_the_whole_part_of_a_rank(name: str | None, level: int):
    """The three names in their order; nothing is normal, and no error."""
    ranking = Ranking(always(name))
    assert {int(ranking.rank(Request(), 0.0)) for _ in range(500)} == {level}
    assert ranking.errors == 0


@pytest.mark.parametrize(
    "classify",
    [
        *map(always, ["", "Critical", "crit", "x" * 10**7, "\ud800", 0, 1.5, True, b"critical"]),
        *map(always, [["critical"], {}, object(), CLASSES]),
        *map(
            raising, [ValueError(), KeyError("x"), RecursionError(), MemoryError(), StopIteration()]
        ),
    ],
)
def test_nonsense_of_a_classifier_is_normal_and_counted(classify: Callable[[Any], Any]):
    """Whatever it does, the request is normal, nothing is raised, and the error shows."""
    ranking = Ranking(classify)
    for number in range(1, 4):
        assert 1.0 <= ranking.rank(Request(), 0.0) < 2.0
        assert ranking.errors == number


@pytest.mark.parametrize(
    "user", [always(Nameless()), always(Mute()), raising(ValueError()), raising(KeyError("user"))]
)
def test_nonsense_of_a_user_callable_is_nobody_and_counted(user: Callable[[Any], Any]):
    """Its requests are spread evenly within their class, like those of nobody."""
    ranking = Ranking(always("sheddable"), user)
    ranks = [ranking.rank(Request(), 0.0) for _ in range(200)]
    assert ranking.errors == 200
    assert len(set(ranks)) == 200
    assert all(2.0 <= rank < 3.0 for rank in ranks)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(), asyncio.CancelledError()])
def test_what_ends_a_program_is_not_swallowed(error: BaseException):
    """Only errors count as nonsense."""
    with pytest.raises(type(error)):
        Ranking(raising(error)).rank(Request(), 0.0)
    with pytest.raises(type(error)):
        Ranking(always("normal"), raising(error)).rank(Request(), 0.0)


def test_an_async_callable_is_nonsense():
    """A coroutine is no class; that it was never awaited is for the developer to read."""

    async def classify(exchange: Any) -> str:
        return "critical"

    ranking = Ranking(classify)  # type: ignore[arg-type]
    with pytest.warns(RuntimeWarning, match="never awaited"):
        assert 1.0 <= ranking.rank(Request(), 0.0) < 2.0
    assert ranking.errors == 1


def test_both_callables_see_the_request():
    """They are given the exchange itself."""
    seen: list[Any] = []

    def tell(exchange: Any) -> str:
        seen.append(exchange)
        return "critical"

    request = Request()
    Ranking(tell, tell).rank(request, 0.0)
    assert seen == [request, request]


@pytest.mark.parametrize("share", [0.01, 0.1, 1 / 3, 0.5, 0.9])
def test_without_users_any_share_is_spread_evenly(share: float):
    """Of each hundred requests in a row, as many as should be are beyond any line."""
    ranking = Ranking(always("normal"))
    refused = [ranking.rank(Request(), 0.0) >= 2.0 - share for _ in range(1000)]
    for begin in range(0, 900, 50):
        assert abs(sum(refused[begin : begin + 100]) - 100 * share) <= 3


def test_a_user_keeps_its_place_for_a_minute():
    """Not longer: with the minute everybody is shuffled."""
    places = [place("anna", now) for now in (60.0, 75.0, 119.9, 120.0, 179.9, 180.0)]
    assert places[0] == places[1] == places[2] != places[3] == places[4] != places[5]


def test_every_worker_knows_the_same_places():
    """They depend on user and minute alone, not on the process or on who came before."""
    here = Ranking(lambda _: None, lambda request: request.path)
    for number in range(50):
        here.rank(Request(path=f"/{number}"), 300.0)
    code = (
        "from tests.core.test_ranking import place\n"
        "print([place(f'/{number}', 600.0) for number in range(50)])"
    )
    there = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        check=True,
    ).stdout
    ranks = [here.rank(Request(path=f"/{number}"), 600.0) - 1 for number in range(50)]
    assert ranks == json.loads(there)


def test_users_are_spread_evenly_over_the_places():
    """In each minute anew: who is unlucky now is as likely to be lucky then as anybody."""
    users = [f"{number}@example.org" for number in range(4000)]
    first, second = ([place(user, now) for user in users] for now in (0.0, 60.0))
    for places in (first, second):
        tenths = Counter(int(10 * p) for p in places)
        assert min(tenths.values()) > 300
        assert max(tenths.values()) < 500
    unlucky = [b for a, b in zip(first, second, strict=True) if a >= 0.9]
    assert 0.4 < sum(unlucky) / len(unlucky) < 0.6


@pytest.mark.parametrize(
    ("one", "other"),
    [("anna", "berta"), (1, 2), (b"a", b"b"), (UUID(int=1), UUID(int=2)), (("a", 1), ("a", 2))],
)
def test_users_are_told_apart_by_their_text(one: Any, other: Any):
    """Whatever has a text can be a user, and equal texts are the same user."""
    assert place(one) == place(one)
    assert any(place(one, 60.0 * m) != place(other, 60.0 * m) for m in range(9))


def test_a_huge_user_costs_no_more_than_its_ends():
    """Clients may choose it: only beginning and end of a long one are looked at."""
    start, end = "a" * 128, "z" * 128
    assert place(start + "x" * 10**7 + end) == place(start + end)
    assert any(place(start + f"{n}" + end) != place(start + f"{n}" + end[:-1]) for n in range(9))


def test_users_that_are_nobody_have_no_place():
    """``None`` is spread like requests without users, and is no error."""
    ranking = Ranking(always("critical"), always(None))
    assert len({ranking.rank(Request(), 0.0) for _ in range(100)}) == 100
    assert ranking.errors == 0
    assert ranking.sticky
    assert not Ranking(always("critical")).sticky


anything: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.sampled_from(CLASSES), st.text(), st.binary(), st.integers(), st.floats(),
    st.lists(st.none()), st.builds(Nameless), st.builds(Mute),
)  # fmt: skip


@given(st.lists(st.tuples(anything, anything), max_size=20), st.floats(0.0, 1e9))
def test_ranks_stay_in_range_whatever_the_callables_say(answers: list[Any], now: float):
    """A rank is always in [0, 3), and nothing is raised."""
    classes: Iterator[Any] = iter([name for name, _ in answers])
    users: Iterator[Any] = iter([user for _, user in answers])
    ranking = Ranking(lambda _: next(classes), lambda _: next(users))
    for _ in answers:
        assert 0.0 <= ranking.rank(Request(), now) < 3.0
    assert ranking.errors <= 2 * len(answers)
