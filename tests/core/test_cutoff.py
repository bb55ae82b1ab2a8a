"""The line between ranks: what it lets in, and how it learns what can be served."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resilience_mw.core.cohorts import Cohorts
from resilience_mw.core.cutoff import LINE, Cutoff, Flow, between
from resilience_mw.core.hold import Hold
from resilience_mw.core.ranking import COHORTS, Ranking

from .requests import Request


def flow(
    arrivals: int,
    done: int,
    *,
    length: float = 0.1,
    waited: float | None = None,
    pressed: bool = True,
    spare: bool = False,
) -> Flow:
    """Return a window, by default of an overload."""
    return Flow(length, arrivals, done, waited, pressed, spare)


def feed(
    cutoff: Cutoff, windows: int, *, each: dict[float, int], done: int, **more: object
) -> None:
    """Let windows pass in which so many requests of each rank arrive."""
    for _ in range(windows):
        for rank, number in each.items():
            for _ in range(number):
                cutoff.count(rank)
        cutoff.update(flow(sum(each.values()), done, **more))  # type: ignore[arg-type]


MIX = {0.5: 3, 1.5: 6, 2.5: 21}
"""300 requests a second."""


def test_it_lets_everybody_in_until_it_is_started():
    """Rates are learned all the while, so that a start needs no more than one window."""
    cutoff = Cutoff()
    assert not cutoff.start()
    feed(cutoff, 60, each=MIX, done=10)
    assert not cutoff.active
    assert cutoff.rates == pytest.approx([30, 60, 210], rel=0.01)
    assert cutoff.arriving == pytest.approx(300, rel=0.01)
    assert cutoff.start()
    assert cutoff.start()
    assert cutoff.capacity == pytest.approx(100, rel=0.01)


def test_it_cannot_start_before_anything_is_known():
    """Neither without completions nor without ranks."""
    idle, unranked = Cutoff(), Cutoff()
    feed(idle, 10, each=MIX, done=0)
    feed(unranked, 10, each={}, done=10)
    for cutoff in (idle, unranked):
        assert not cutoff.start()
        assert not cutoff.active


def test_the_lowest_ranks_are_refused():
    """Capacity is filled from the top; waits shift the line, always downwards."""
    cutoff = Cutoff()
    feed(cutoff, 60, each=MIX, done=10)
    cutoff.start()
    assert cutoff.line(0.5) == pytest.approx(2 + 10 / 210, abs=0.01)
    assert cutoff.line(0.0) == pytest.approx(2 + 40 / 210, abs=0.01)
    assert cutoff.line(1.0) == pytest.approx(2.0, abs=0.02)
    assert cutoff.line(1.5) == pytest.approx(1 + 50 / 60, abs=0.02)
    assert cutoff.line(2.5) == pytest.approx(1.0, abs=0.02)
    assert cutoff.line(100.0) == pytest.approx(1 / 3, abs=0.01)
    lines = [cutoff.line(delay / 10) for delay in range(100)]
    assert lines == sorted(lines, reverse=True)


def test_nobody_is_refused_by_a_line_that_all_fit_below():
    """The line then lies beyond every rank."""
    cutoff = Cutoff()
    feed(cutoff, 60, each={1.5: 10}, done=10)
    cutoff.start()
    assert cutoff.line(0.0) == 3.0


def test_capacity_follows_what_is_completed():
    """Down and up, within a few seconds; down only while requests wait."""
    cutoff = Cutoff()
    feed(cutoff, 60, each=MIX, done=10)
    cutoff.start()
    for _ in range(40):
        cutoff.line(0.6)
        feed(cutoff, 1, each=MIX, done=5)
    assert cutoff.capacity == pytest.approx(50, rel=0.05)
    for _ in range(40):
        cutoff.line(0.1)
        feed(cutoff, 1, each=MIX, done=20)
    assert cutoff.capacity == pytest.approx(200, rel=0.05)
    for _ in range(40):
        cutoff.line(0.1)
        feed(cutoff, 1, each=MIX, done=5)
    assert cutoff.capacity == pytest.approx(200, rel=0.05)


def test_time_to_spare_raises_capacity_at_once_but_not_without_end():
    """A quarter each tenth of a second, as far as all that arrive fit in; never down."""
    cutoff = Cutoff()
    feed(cutoff, 60, each=MIX, done=10)
    cutoff.start()
    feed(cutoff, 5, each=MIX, done=10, spare=True)
    assert cutoff.line(0.0) == 3.0
    feed(cutoff, 50, each=MIX, done=10, spare=True)
    assert cutoff.capacity == pytest.approx(1.3 * 300, rel=0.02)
    before = cutoff.capacity
    feed(cutoff, 1, each={}, done=0, spare=True)
    assert cutoff.capacity == before


def test_a_second_without_pressure_lifts_the_line():
    """Not less, and a refusal begins the second anew."""
    cutoff = Cutoff()
    feed(cutoff, 60, each=MIX, done=10)
    cutoff.start()
    feed(cutoff, 9, each=MIX, done=10, pressed=False)
    feed(cutoff, 1, each=MIX, done=10, pressed=True)
    feed(cutoff, 9, each=MIX, done=10, pressed=False)
    assert cutoff.active
    feed(cutoff, 2, each=MIX, done=10, pressed=False)
    assert not cutoff.active


@pytest.mark.parametrize("factor", [0, 3])
def test_a_jump_of_the_load_is_noticed_within_half_a_second(factor: int):
    """Rates are not dragged along for seconds."""
    cutoff = Cutoff()
    feed(cutoff, 60, each=MIX, done=10)
    cutoff.start()
    feed(cutoff, 5, each={rank: factor * n for rank, n in MIX.items()}, done=10)
    if factor:
        assert cutoff.arriving == pytest.approx(900, rel=0.25)
    else:
        assert cutoff.line(0.0) == 3.0


def test_arrivals_are_counted_along_the_time_they_were_sent():
    """While the queue before us grows, few that arrive are seen; while it shrinks, many."""
    growing, shrinking = Cutoff(), Cutoff()
    for number in range(80):
        # A third of what is sent is seen: what is seen last is older each time.
        growing.count(1.5)
        growing.update(flow(10, 10, waited=number * 0.2 / 3))
        shrinking.count(1.5)
        shrinking.update(flow(60, 10, waited=9.0 - number * 0.1))
    assert growing.arriving == pytest.approx(300, rel=0.05)
    assert shrinking.arriving == pytest.approx(300, rel=0.05)


def test_waits_that_were_not_measured_shift_nothing():
    """A wait that is known again after a while is not one that has just grown."""
    cutoff = Cutoff()
    for number in range(60):
        cutoff.count(1.5)
        cutoff.update(flow(30, 10, waited=0.09 if number % 2 else None))
    assert cutoff.arriving == pytest.approx(300, rel=0.02)


def test_classes_are_told_by_those_that_were_ranked():
    """Not every request is: the shares of the last seconds stand for all."""
    cutoff = Cutoff()
    for _ in range(80):
        cutoff.count(0.5)
        cutoff.count(2.5)
        cutoff.update(flow(40, 10))
    assert cutoff.rates == pytest.approx([200, 0, 200], rel=0.02)


def test_a_slow_worker_remembers_for_longer():
    """Two completions a second are no rate that a single window could tell."""
    cutoff = Cutoff()
    for number in range(200):
        cutoff.count(1.5)
        cutoff.line(1.0)
        cutoff.update(flow(2, number % 5 == 0))
        if number == 100:
            cutoff.start()
        if number > 100:
            assert 1.5 <= cutoff.capacity <= 2.6


def test_a_worker_that_has_idled_learns_at_once_how_fast_it_is():
    """What it did while nobody asked says nothing."""
    cutoff = Cutoff()
    feed(cutoff, 600, each={}, done=0)
    feed(cutoff, 1, each={1.5: 1}, done=1, length=50.0)
    feed(cutoff, 10, each={1.5: 30}, done=10)
    assert cutoff.done == pytest.approx(100, rel=0.2)


@given(
    st.lists(
        st.tuples(
            st.floats(1e-6, 100.0), st.integers(0, 10_000), st.integers(0, 10_000),
            st.none() | st.floats(0.0, 60.0), st.booleans(), st.booleans(),
            st.lists(st.floats(0.0, 3.0, exclude_max=True), max_size=5), st.floats(0.0, 1e6),
        ),
        max_size=40,
    ),
    st.booleans(),
)  # fmt: skip
def test_whatever_happens_the_line_is_a_rank(windows: list[tuple[object, ...]], held: bool):
    """No sequence of windows makes it fail, or leave [0, 3]."""
    cutoff = Hold(Ranking(lambda _: None, lambda _: "somebody")) if held else Cutoff()
    for length, arrivals, done, waited, pressed, spare, ranks, delay in windows:
        for rank in ranks:  # type: ignore[attr-defined]
            cutoff.count(rank)
        cutoff.start()
        if cutoff.active:
            assert 0.0 <= cutoff.line(delay) <= 3.0  # type: ignore[arg-type]
        cutoff.update(Flow(length, arrivals, done, waited, pressed, spare))  # type: ignore[arg-type]
        assert cutoff.arriving >= 0.0
        assert cutoff.capacity >= 0.0


def test_between_points():
    """On straight lines, and level beyond the last point."""
    points = ((0.0, 2.0), (1.0, 1.0), (3.0, 0.0))
    assert [between(points, at) for at in (0.0, 0.5, 1.0, 2.0, 3.0, 9.0)] == [2, 1.5, 1, 0.5, 0, 0]
    assert between(LINE, 0.5) == 1.0


# -- what users ask for, and a line that is held still ---------------------------------------------


def test_cohorts_say_what_a_line_lets_in():
    """By what each of them asked for, in the order of their places."""
    cohorts = Cohorts(range(COHORTS))
    for cohort, number in ((0, 1), (10, 6), (20, 3)):
        for _ in range(number):
            cohorts.count(1 + cohort / COHORTS)
    assert cohorts.line(0.5) == 3.0  # nothing is fixed yet
    cohorts.fix()
    assert cohorts.line(0.0) == 0.0
    assert cohorts.line(0.1) == 1.0
    assert cohorts.line(0.5) == 1 + 10 / COHORTS  # the heavy one does not fit in
    assert cohorts.line(0.75) == 1 + 20 / COHORTS
    assert cohorts.line(1.0) == 3.0


def test_cohorts_are_followed_to_their_new_places():
    """What they asked for goes with them, in every class."""
    places = [(place + 100) % COHORTS for place in range(COHORTS)]
    cohorts = Cohorts(range(COHORTS))
    for level in range(3):
        cohorts.count(level + 200 / COHORTS)
        cohorts.count(level + 5 / COHORTS)
    same = cohorts._places
    assert not cohorts.shuffled(same)
    assert cohorts.shuffled(places)
    assert not cohorts.shuffled(places)
    cohorts.fix()
    moved = sorted([200 + 100 - COHORTS, 105])
    assert [cohorts.line(number / 6 + 0.01) for number in range(6)] == [
        level + place / COHORTS for level in range(3) for place in moved
    ]


def test_cohorts_forget():
    """After half a minute what was asked for counts half."""
    cohorts = Cohorts(range(COHORTS))
    for _ in range(4):
        cohorts.count(0.0)
    cohorts.age(29.0)
    cohorts.age(1.0)
    cohorts.count(1.0)
    cohorts.count(2.0)
    cohorts.fix()
    assert cohorts.line(0.51) == 1.0


def test_what_users_ask_for_is_followed_while_nobody_is_refused():
    """Through as many minutes as it takes until there is pressure."""
    ranking = Ranking(lambda _: "normal", lambda request: request.path)
    hold = Hold(ranking)
    places = {}
    for minute in range(5):
        for path in ["/heavy"] * 9 + ["/light"]:
            rank = places[path] = ranking.rank(Request(path=path), 60.0 * minute)
            hold.count(rank)
        hold.update(flow(10, 1, length=60.0, pressed=False))
    hold._cohorts.fix()
    first, second = sorted(places, key=places.__getitem__)
    share = 0.9 if first == "/heavy" else 0.1
    assert hold._cohorts.line(share - 0.01) == places[first]
    assert hold._cohorts.line(share + 0.01) == places[second]


class Held:
    """A held line with a load of as many requests in each cohort, in one class."""

    def __init__(self, done: int = 10) -> None:
        self.ranking = Ranking(lambda _: "normal", lambda _: "somebody")
        self.ranking.rank(Request(), 0.0)
        self.cutoff = Hold(self.ranking)
        self.done = done
        self.number = 0
        self.windows(30)
        self.cutoff.start()
        self.windows(60)

    def windows(self, number: int, delay: float = 1.0, arrivals: int = 30) -> float:
        """Let windows pass with such waits; returns the share of the class that is let in."""
        line = 0.0
        for _ in range(number):
            for _ in range(arrivals):
                self.number += 97
                self.cutoff.count(1 + self.number % COHORTS / COHORTS)
            line = self.cutoff.line(delay)
            self.cutoff.update(flow(arrivals, self.done))
        return line - 1


def test_a_held_line_is_looked_for_and_then_keeps_still():
    """Waits between a half and twice of what is allowed do not move it."""
    held = Held()
    share = held.windows(1)
    assert share == pytest.approx(1 / 3, abs=0.02)
    for delay in (0.6, 1.9, 0.3, 1.0):
        assert held.windows(20, delay) == share


def test_long_waits_take_the_edge_back_and_short_ones_give_it_back():
    """The same part each time, and not in between."""
    held = Held()
    share = held.windows(1)
    held.windows(3, 2.5)
    shut = held.windows(10, 1.0)
    assert shut == pytest.approx(share * 0.96, abs=0.008)
    held.windows(3, 0.4)
    assert held.windows(10, 1.0) == share


def test_waits_that_stay_long_move_the_line():
    """Every two seconds, by three hundredths."""
    held = Held()
    share = held.windows(1)
    assert held.windows(22, 2.5) == pytest.approx(share * 0.93, abs=0.008)
    assert held.windows(22, 2.5) == pytest.approx(share * 0.90, abs=0.008)


def test_waits_that_stay_short_move_it_up():
    """After eight seconds, by three hundredths."""
    held = Held()
    share = held.windows(1)
    assert held.windows(75, 0.1) == share
    assert held.windows(10, 0.1) == pytest.approx(share * 1.03, abs=0.008)


def test_a_storm_is_met_by_a_line_that_moves():
    """Beyond three and a half times of what is allowed, down to less than a third."""
    held = Held()
    share = held.windows(1)
    assert held.windows(1, 4.5) == pytest.approx(share * 0.65, abs=0.01)
    assert held.windows(1, 50.0) < 0.32 * share


def test_a_jump_of_the_load_is_met_at_once():
    """Then the line is looked for anew."""
    held = Held()
    held.windows(6, 1.0, arrivals=90)
    assert held.windows(1, 0.5, arrivals=90) == pytest.approx(1 / 9, abs=0.03)
    held.windows(60, 0.5, arrivals=90)
    assert held.windows(1, 1.0, arrivals=90) == pytest.approx(1 / 9, abs=0.02)


@pytest.mark.parametrize(("delay", "factor"), [(1.0, 1.015), (2.2, 0.985)])
def test_a_new_minute_begins_higher_or_lower(delay: float, factor: float):
    """Where the edge was seldom shut out, a little higher; where mostly, lower."""
    held = Held()
    before = held.cutoff._let_in
    for _ in range(20):
        held.windows(1, delay)
        held.windows(4, min(delay, 1.9))
    held.ranking.rank(Request(), 60.0)
    held.windows(1)
    assert held.cutoff._let_in == pytest.approx(before * factor, abs=0.001)
    assert held.windows(1) == pytest.approx(
        (factor - 0.04 * (delay > 2)) * held.cutoff._unit, abs=0.02
    )


def test_a_new_minute_in_between_leaves_it():
    """An edge that was shut for a third of the minute is where it should be."""
    held = Held()
    before = held.cutoff._let_in
    held.windows(2, 2.5)
    held.windows(10, 1.0)
    held.windows(1, 0.4)
    held.windows(20, 1.0)
    held.ranking.rank(Request(), 60.0)
    held.windows(1)
    assert held.cutoff._let_in == before
