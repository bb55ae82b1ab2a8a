"""Who is refused in an overload, on every workload."""

from __future__ import annotations

import pytest

from resilience_mw.testing.result import quantile
from tests.model.ranked import Scenario, admitted
from tests.model.workloads import CASES, KEPT, Case

CRITICAL, NORMAL, SHEDDABLE = range(3)

UVLOOP = [
    case
    for case in CASES
    if case.kind == "uvloop" and case.new_connections and case.name in ("compute", "awaits", "io")
]
SLOW = [case for case in [*KEPT, *UVLOOP] if case.name != "light io"]
"""Those of which many seconds cost little."""


@pytest.mark.parametrize("case", SLOW, ids=str)
def test_sheddable_goes_first(case: Case):
    """At 3x, critical and normal requests that fit are served from the first second to the last,
    and nothing is lost by it: a few percent of what the plain gate serves at most."""
    scenario = Scenario(case, [(2, 0.5), (16, 3)], (0.3, 0.6))
    result, _ = scenario.ranked()
    assert admitted(result, CRITICAL, 2, 18) >= 0.97
    assert admitted(result, NORMAL, 2, 18) >= (0.85 if case.name == "pool" else 0.9)
    assert admitted(result, SHEDDABLE, 2, 18) <= 0.12
    summary, plain = result.summary(2, 18), scenario.plain().summary(2, 18)
    assert summary.goodput >= 0.97 * plain.goodput
    assert summary.unanswered == 0


@pytest.mark.parametrize("case", KEPT, ids=str)
def test_normal_goes_next(case: Case):
    """When critical requests fit and normal ones do not, sheddable ones get nothing."""
    seconds = 6 if case.name == "light io" else 12
    scenario = Scenario(case, [(2, 0.5), (seconds, 3)], (0.3, 1.4))
    result, _ = scenario.ranked()
    begin, end = 4, 2 + seconds
    assert admitted(result, CRITICAL, begin, end) >= 0.97
    assert 0.4 <= admitted(result, NORMAL, begin, end) <= 0.6
    assert admitted(result, SHEDDABLE, begin, end) <= 0.02


@pytest.mark.parametrize("case", KEPT, ids=str)
def test_critical_goes_last_but_goes(case: Case):
    """With critical requests at twice the capacity, they are limited as any others would be."""
    seconds = 6 if case.name == "light io" else 12
    scenario = Scenario(case, [(2, 0.5), (seconds, 3)], (2.0, 0.5))
    result, _ = scenario.ranked()
    begin, end = 4, 2 + seconds
    assert 0.4 <= admitted(result, CRITICAL, begin, end) <= 0.6
    assert admitted(result, NORMAL, begin, end) <= 0.02
    summary, plain = result.summary(begin, end), scenario.plain().summary(begin, end)
    assert summary.goodput >= 0.95 * plain.goodput
    assert summary.p99 <= plain.p99 + 0.2
    assert summary.unanswered == 0


@pytest.mark.parametrize("factor", [1.3, 2, 5, 10])
@pytest.mark.parametrize("name", ["compute", "io", "wsgi compute"])
def test_mild_and_heavy_overloads(name: str, factor: float):
    """The same at other loads, once they are steady."""
    case = next(case for case in KEPT if case.name == name)
    scenario = Scenario(case, [(4, 0.5), (10, factor)], (0.3, 0.6))
    result, _ = scenario.ranked()
    assert admitted(result, CRITICAL, 7, 14) >= 0.97
    assert admitted(result, NORMAL, 7, 14) >= 0.9
    summary, plain = result.summary(7, 14), scenario.plain().summary(7, 14)
    assert summary.goodput >= 0.96 * plain.goodput


@pytest.mark.parametrize("load", [0.5, 0.9])
@pytest.mark.parametrize("case", KEPT, ids=str)
def test_nobody_is_refused_by_rank_after_the_pressure(case: Case, load: float):
    """Two seconds after the load fell, everybody is let in, of whatever class."""
    seconds = 3 if case.name == "light io" else 6
    scenario = Scenario(case, [(1, 0.5), (seconds, 3), (5, load)], (0.3, 0.6))
    result, gate = scenario.ranked()
    assert gate.snapshot().refused
    over = 1 + seconds + 2
    late = [outcome.reason for outcome in result.outcomes if outcome.arrived > over]
    assert late.count("saturated") <= (0 if load == 0.5 else 0.005 * len(late))
    assert gate.cutoff.active is False or load == 0.9


@pytest.mark.parametrize("case", [*KEPT, *UVLOOP], ids=str)
def test_without_an_overload_ranks_change_nothing(case: Case):
    """At 0.8x nobody is refused, and hardly anybody waits longer than without ranks."""
    scenario = Scenario(case, [(8, 0.8)], (0.1, 0.2))
    (result, gate), plain = scenario.ranked(), scenario.plain()
    assert gate.snapshot().refused == {}
    assert gate.snapshot().cutoff is None
    assert result.summary().p99 <= 1.2 * plain.summary().p99


@pytest.mark.parametrize(("name", "limit"), [("sync io", 50), ("pool", 12), ("io", 20)])
def test_priorities_under_the_other_law(name: str, limit: int):
    """Where `aimd` protects at all, the least important are refused first by it, too."""
    case = next(case for case in KEPT if case.name == name)
    scenario = Scenario(case, [(2, 0.5), (10, 3), (4, 0.5)], (0.3, 0.6), limit=limit)
    result, gate = scenario.ranked()
    assert gate.law.name == "aimd"
    assert admitted(result, CRITICAL, 4, 12) >= 0.97
    assert admitted(result, NORMAL, 4, 12) >= 0.9
    assert admitted(result, SHEDDABLE, 4, 12) <= 0.12
    assert [o for o in result.outcomes if o.status == 503 and o.arrived > 14] == []


def test_a_load_that_jumps_up_and_down():
    """Each time, critical requests get through, and the line follows within a second or two."""
    case = KEPT[0]
    steps = [(3, 0.5), (6, 2), (6, 6), (6, 1.2), (6, 4), (4, 0.5)]
    result, _ = Scenario(case, steps, (0.3, 0.3)).ranked()
    for begin in (3, 9, 15, 21):
        assert admitted(result, CRITICAL, begin, begin + 6) >= 0.9
        assert admitted(result, CRITICAL, begin + 2, begin + 6) >= 0.97
        summary = result.summary(begin + 2, begin + 6)
        assert summary.goodput >= 0.9 * min(summary.offered, Scenario(case, steps, (0, 0)).most)


def test_refused_clients_learn_of_it_soon():
    """Whoever is refused by rank is refused at once: nobody waits in a queue for it."""
    scenario = Scenario(KEPT[2], [(2, 0.5), (10, 3)], (0.3, 0.6))
    result, gate = scenario.ranked()
    waits = sorted(o.latency for o in result.outcomes if o.reason == "saturated" and o.arrived > 4)
    assert quantile(waits, 0.99) <= 0.15
    refused = gate.snapshot().refused
    assert refused["saturated"] >= 0.9 * sum(refused.values())
