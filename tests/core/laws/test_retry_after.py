"""When refused clients are told to come back."""

from __future__ import annotations

from random import Random

import pytest

from resilience_mw.core import AdaptiveGate, Reply, Senses
from resilience_mw.core.laws import Adaptive
from resilience_mw.core.retry import LONGEST, retry_after
from tests.core.requests import Request


def test_no_excess_is_one_second():
    """Where all are served, a refusal is a moment's bad luck."""
    random = Random(1)
    assert {retry_after(1.0, 0.0, random.random) for _ in range(100)} == {1}


@pytest.mark.parametrize("demand", [2.0, 5.0, 10.0])
def test_the_refused_spread_over_the_excess(demand):
    """At k times what can be served, they come back after about k seconds, not all at once."""
    random = Random(1)
    seconds = [retry_after(demand, 0.0, random.random) for _ in range(4000)]
    assert sum(seconds) / len(seconds) == pytest.approx(demand, abs=0.6)
    assert len(set(seconds)) >= 2 * demand - 2


def test_the_queue_is_worked_off_first():
    """Nobody is told to come back before those who wait already have been served."""
    random = Random(1)
    assert min(retry_after(1.5, 4.0, random.random) for _ in range(100)) >= 5


@pytest.mark.parametrize("demand", [0.0, 1.0, 1e9, float("inf")])
def test_bounded(demand):
    """It is never below a second nor above the longest, whatever was measured."""
    assert 1 <= retry_after(demand, 0.0, lambda: 0.999) <= LONGEST
    assert retry_after(1e9, 1e9, lambda: 0.5) == LONGEST


def test_same_random_same_answer():
    """The jitter comes from the source passed in, and from nothing else."""
    first, second = Random(5), Random(5)
    assert [retry_after(7.0, 0.0, first.random) for _ in range(20)] == [
        retry_after(7.0, 0.0, second.random) for _ in range(20)
    ]


def test_rendered_once_a_window():
    """All refusals of a window share one reply; the next window may say something else."""
    law = Adaptive(max_limit=1)
    gate = AdaptiveGate(law, max_queue=0, random=lambda: 0.5)
    gate.listen(lambda now: Senses(now, 0.0, int(now * 1000)))
    gate.tick(100.0)
    assert gate.enter(Request(100.0)) is None
    replies = [gate.enter(Request(100.0)) for _ in range(9)]
    assert all(isinstance(reply, Reply) for reply in replies)
    assert len({id(reply) for reply in replies}) == 1
    gate.tick(100.2)
    later = gate.enter(Request(100.2))
    assert isinstance(later, Reply)
    assert later is not replies[0]
    assert dict(later.headers)["Retry-After"] == "10"
