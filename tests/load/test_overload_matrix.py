from __future__ import annotations

import itertools

import pytest

from benchmarks.overload import matrix
from benchmarks.overload.protections import OURS
from benchmarks.overload.workloads import WORKLOADS


def test_the_full_plan_has_every_cell_once():
    """Each combination that exists, none twice: 6 x 2 loops x 8 protections, 2 x 6 for WSGI."""
    cells = matrix.full().cells
    assert len(cells) == len(set(cells)) == (6 * 2 * 8 + 2 * 6) * 4 * 2


def test_peers_are_measured_between_our_own_runs():
    """No peer is further from ours than one load: they share the machine's weather."""
    for _, group in itertools.groupby(matrix.full().cells, lambda cell: cell[:4]):
        assert OURS in [cell.protection for cell in group]


def test_somebody_else_begins_at_each_load():
    """Whoever comes first after a capacity measurement is not always the same."""
    groups = itertools.groupby(matrix.full().cells, lambda cell: cell[:4])
    first = [next(group).protection for _, group in itertools.islice(groups, len(matrix.LOADS))]
    assert len(set(first)) == len(matrix.LOADS)


def test_the_quick_plan_has_each_kind_of_work_and_a_peer_for_it():
    """What people run first shows the loop, a backend, a pool, threads, WSGI, and Envoy."""
    cells = matrix.quick().cells
    assert {"compute", "io", "pool", "thread", "wsgi-compute"} == {cell.workload for cell in cells}
    for _, group in itertools.groupby(cells, lambda cell: cell.workload):
        names = [cell.protection for cell in group]
        assert OURS in names
        assert len(names) > 1
    assert "envoy" in {cell.protection for cell in cells}


def test_filters_combine():
    """Values of one key are alternatives, keys are conditions."""
    only = matrix.parse_only(["load=2,5", "loop=uvloop", "workload=io", "part=cells"])
    plan = matrix.select(matrix.full(), only)
    assert {(cell.load, cell.loop, cell.workload) for cell in plan.cells} == {
        (2.0, "uvloop", "io"),
        (5.0, "uvloop", "io"),
    }
    assert not plan.drills


def test_a_drill_can_be_chosen_alone():
    """`part` names it; a load does not exclude what has none."""
    plan = matrix.select(matrix.full(), matrix.parse_only(["part=pause", "load=5"]))
    assert not plan.cells
    assert {drill.workload for drill in plan.drills} == set(WORKLOADS)


@pytest.mark.parametrize(
    ("text", "message"),
    [("colour=red", "must begin with one of"), ("load=3", "load must be of 0.8, 2, 5, 10")],
)
def test_unknown_filters_are_errors(text, message):
    """The message lists what there is."""
    with pytest.raises(ValueError, match=message):
        matrix.parse_only([text])
