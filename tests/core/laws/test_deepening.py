"""Where one connection is accepted a turn, clients wait where only a depth can be seen."""

from __future__ import annotations

import pytest

from resilience_mw.core.laws import Adaptive
from resilience_mw.core.laws.deepening import Deepening

from .windows import Feeder, window


def fed(*depths: int, served: int = 10, full: bool = True) -> Deepening:
    """Return one that has seen these depths, one a window."""
    accepts = Deepening()
    for depth in depths:
        accepts.update(depth, served, full=full)
    return accepts


@pytest.mark.parametrize(("load", "windows"), [(1.5, 3), (2.0, 2), (5.0, 2)])
def test_a_load_is_believed_after_so_many_windows(load, windows):
    """Each that is served leaves rho - 1 more behind."""
    depths = [round((load - 1) * 10 * n) for n in range(1, windows + 1)]
    assert not fed(*depths[:-1]).steep
    assert fed(*depths).steep


def test_chance_a_pause_and_an_idle_loop_are_no_evidence():
    """Growth that ends at once, that is little, or beside time that is left."""
    assert not fed(40, 30, 70, 60).steep
    assert not fed(2, 4, 6, 8, 10, 12).steep
    assert not fed(20, 40, 60, full=False).steep


def overloaded(*, turns: int) -> Adaptive:
    """Return a law whose accept queue has deepened for two windows of so many turns."""
    law = Adaptive()
    feeder = Feeder(law)
    feeder.feed(0.3, utilization=0.5, arrivals=5, latencies=[0.01] * 5)
    for depth in (20, 40):
        feeder.feed(
            0.1, utilization=1.0, turns=turns, arrivals=9, latencies=[0.01] * 9, backlog=depth
        )
    return law


def test_who_comes_is_refused_while_others_wait_outside():
    """Two windows, and no second of proof: else those would wait for that second, too."""
    law = overloaded(turns=10)
    assert law.saturated
    assert law.refuses(0.01, 40) == "saturated"
    assert law.refuses(0.01, 10) is None
    assert law.refuses(0.2, 0) == "waited"


def test_the_longer_the_turns_the_fewer_may_wait_outside():
    """One is accepted a turn: ten of them would wait for ten."""
    law = overloaded(turns=1)
    assert law.refuses(0.01, 2) == "saturated"
    assert law.refuses(0.01, 1) is None


def test_it_is_believed_until_the_loop_has_time_left():
    """The queue is gone as soon as others are refused; the overload is not."""
    law = overloaded(turns=10)
    law.update(window(100.6, utilization=1.0, arrivals=90, refused=80, latencies=[0.01] * 9))
    assert law.refuses(0.2, 0) == "waited"
    for now in (101.0, 101.1):
        law.update(window(now, utilization=0.5, arrivals=5, latencies=[0.01] * 5))
    assert law.refuses(0.2, 40) is None


def test_a_window_without_a_refusal_is_not_the_end():
    """While one long turn is worked off nobody is asked; the loop has no time left all the same."""
    law = Adaptive()
    feeder = Feeder(law)
    nine, five = [0.01] * 9, [0.01] * 5
    feeder.feed(0.3, utilization=0.5, arrivals=5, latencies=five)
    feeder.feed(0.3, utilization=1.0, turns=1, inflight=40, arrivals=9, latencies=nine)
    feeder.feed(0.1, utilization=1.0, turns=1, arrivals=49, refused=40, latencies=nine)
    assert law.saturated
    feeder.feed(0.1, utilization=1.0, turns=1, arrivals=9, latencies=nine)
    assert law.saturated
    feeder.feed(1.5, utilization=0.5, arrivals=5, latencies=five)
    assert not law.saturated
