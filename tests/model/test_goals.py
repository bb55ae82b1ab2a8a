"""What the adaptive law has to reach on every workload, in virtual time."""

from __future__ import annotations

import pytest

from tests.model.workloads import CASES, KEPT, WORKLOADS, run

SETTLED = 5.0
"""Seconds after which a load counts as steady."""


@pytest.mark.parametrize("case", CASES, ids=str)
def test_nothing_is_refused_at_80_percent(case):
    """Bursts of independent users at 0.8x are not an overload: at most one in a thousand."""
    summary = run(case, [(20, 0.8)]).result.summary()
    assert summary.refused_share <= 0.001
    assert summary.unanswered == 0


# At ten times the capacity, light handlers leave no time but for refusing: only a server that
# refuses before there is a request can do better, and the model has none.
OVERLOADS = [
    pytest.param(case, factor, id=f"{case}-{factor}")
    for case in CASES
    for factor in (2, 5, 10)
    if (case.name, factor) != ("light io", 10)
]


@pytest.mark.parametrize(("case", "factor"), OVERLOADS)
def test_overload_is_served_as_well_as_it_can_be(case, factor):
    """2x to 10x: at least 98 % of G in time, soon, and everybody is answered."""
    seconds = 9 if case.name == "light io" else 15
    outcome = run(case, [(seconds, factor)])
    summary = outcome.result.summary(SETTLED)
    most = outcome.most(summary.offered)
    assert summary.goodput >= 0.98 * most
    assert summary.p99 <= WORKLOADS[case.name].bound
    assert summary.refused_p99 <= 0.25
    assert outcome.result.summary().unanswered == 0


@pytest.mark.parametrize("case", CASES, ids=str)
def test_step_from_60_to_200_percent(case):
    """A step to 2x costs at most a tenth of the first ten seconds."""
    outcome = run(case, [(5, 0.6), (10, 2)])
    summary = outcome.result.summary(5, 15)
    assert summary.goodput >= 0.9 * outcome.most(summary.offered)
    assert summary.unanswered == 0


@pytest.mark.parametrize("case", CASES, ids=str)
def test_overload_is_over_when_it_is_over(case):
    """Two seconds after the load fell to 0.7x, nobody is refused any more."""
    result = run(case, [(6, 3), (12, 0.7)]).result
    assert [o for o in result.outcomes if o.status == 503 and o.arrived > 8] == []


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_pause_is_not_an_overload(case):
    """One block of 400 ms at 30 % load: under half a percent of a minute's requests is refused."""
    summary = run(case, [(60, 0.3)], pauses=[(20.0, 0.4)]).result.summary()
    assert summary.refused_share < 0.005


@pytest.mark.parametrize("pause", [0.4, 0.6, 0.9])
@pytest.mark.parametrize("load", [0.02, 0.3])
@pytest.mark.parametrize("case", KEPT, ids=str)
def test_a_pause_below_a_second_refuses_nobody(case, load, pause):
    """What came meanwhile has waited, but one long turn is no queue that stands."""
    summary = run(case, [(15, load)], pauses=[(10.0, pause)]).result.summary()
    # Light requests come by the hundred in a pause: more than the queue of the gate takes.
    assert summary.refused_share == 0 or set(summary.reasons) == {"queue_full"}
    assert summary.refused_share <= (0.03 if case.name == "light io" and load > 0.1 else 0.0)


@pytest.mark.parametrize("case", KEPT, ids=str)
def test_two_requests_a_second(case):
    """An almost idle worker refuses nothing, so a probe that asks now and then is answered."""
    workload = WORKLOADS[case.name]
    capacity = run(case, [(0.1, 0.1)]).worker.capacity(workload.handler)
    summary = run(case, [(120, 2 / capacity)]).result.summary()
    assert summary.served == pytest.approx(summary.offered)


@pytest.mark.parametrize("name", ["compute", "pool", "sync compute"])
def test_fifteen_minutes_at_130_percent(name):
    """A mild overload of a quarter of an hour neither opens the limit nor moves the baseline."""
    case = next(case for case in KEPT if case.name == name)
    outcome = run(case, [(900, 1.3)])
    limits = [sample.limit for sample in outcome.result.samples]
    early, late = limits[300:2400], limits[6600:8700]
    assert sum(late) / len(late) <= 1.15 * sum(early) / len(early)
    alone = outcome.handler.alone
    assert outcome.law.baseline is not None
    assert alone <= outcome.law.baseline + 1e-4 <= 1.3 * alone + 0.02
    last = outcome.result.summary(700, 880)
    assert last.goodput >= 0.97 * outcome.most(last.offered)
    first = outcome.result.summary(60, 240)
    assert last.p99 <= 1.3 * first.p99


@pytest.mark.parametrize("name", ["compute", "awaits", "io"])
def test_a_worker_that_shares_its_cpu(name):
    """What others take of the CPU is capacity that is not there, not a reason to refuse."""
    case = next(case for case in KEPT if case.name == name)
    assert run(case, [(20, 0.8)], stolen=0.3).result.summary().refused_share <= 0.001
    outcome = run(case, [(12, 3)], stolen=0.5)
    summary = outcome.result.summary(SETTLED)
    assert summary.goodput >= 0.97 * outcome.most(summary.offered)
    assert summary.unanswered == 0


@pytest.mark.parametrize("waited", ["turn", "exact"])
@pytest.mark.parametrize("kind", ["asyncio", "uvloop"])
def test_other_sources_of_waiting(waited, kind):
    """Without TCP_INFO the start of the turn before tells enough to protect computing handlers."""
    case = next(c for c in CASES if c.name == "compute" and c.kind == kind)
    outcome = run(case, [(12, 5)], waited=waited)
    summary = outcome.result.summary(SETTLED)
    assert summary.goodput >= 0.98 * outcome.most(summary.offered)
    assert summary.p99 <= 0.25
    assert summary.unanswered == 0
