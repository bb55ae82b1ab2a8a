from __future__ import annotations

import dataclasses
import math

import pytest

from benchmarks.load import Record
from benchmarks.overload.cell import Result, after
from benchmarks.overload.drills import Drilled, last_refusal, step_share
from benchmarks.overload.goals import cell_goals, drill_goals
from benchmarks.overload.page import write_page
from benchmarks.overload.plots import write_plots
from benchmarks.overload.results import Results

PERFECT = Result(
    workload="compute",
    load=5.0,
    loop="uvloop",
    connection="kept",
    protection="ours",
    server="uvicorn",
    seconds=10.0,
    offered=500.0,
    capacity=100.0,
    service=0.01,
    refusal=0.00005,
    unloaded=0.01,
    best=98.0,
    in_time=98.0,
    p50=0.05,
    p99=0.14,
    settled_p99=0.1,
    refused=0.8,
    refused_p99=0.1,
    settled_refused_p99=0.1,
    unanswered=0.0,
    other=0.0,
    server_cpu=1.0,
    front_cpu=0.0,
    generator_cpu=0.5,
    foreign_cpu=0.0,
    lag_p99=0.001,
    disturbed="",
    attempts=1,
    session="then",
)


def short(result, peers=()):
    return [goal.name for goal in cell_goals(result, peers) if not goal.met]


def record(intended, outcome, latency=0.1):
    made = Record(intended)
    made.outcome = outcome
    made.latency = latency
    return made


def test_a_cell_can_meet_everything():
    """Nothing is short when all is reached."""
    assert short(PERFECT) == []


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"in_time": 96.0}, "98 % of G"),
        ({"p99": 0.144}, "p99 of the 200s"),
        ({"p99": math.nan}, "p99 of the 200s"),
        ({"refused_p99": 0.26}, "p99 of refusals"),
        ({"unanswered": 0.001}, "everyone answered"),
        ({"load": 0.8, "refused": 0.002}, "refused at most 0.1 %"),
    ],
)
def test_each_goal_can_be_short(change, name):
    """One figure beyond its bound, or not measured at all, is one goal missed."""
    assert short(dataclasses.replace(PERFECT, **change)) == [name]


def test_a_better_peer_is_named():
    """Peers are compared by share of their own server's capacity."""
    peer = dataclasses.replace(PERFECT, protection="envoy", capacity=50.0, in_time=49.9)
    (goal,) = (goal for goal in cell_goals(PERFECT, [peer]) if not goal.met)
    assert goal.short == "1.8 points below envoy"


def test_a_peer_that_does_not_answer_is_called_that():
    """Serving all one can is easy for who lets the others wait for ever."""
    peer = dataclasses.replace(PERFECT, protection="none", in_time=100.0, unanswered=0.8)
    (goal,) = (goal for goal in cell_goals(PERFECT, [peer]) if not goal.met)
    assert goal.short == "2.0 points below none (which leaves 80% unanswered)"


def test_awaiting_handlers_have_more_time():
    """2.5 times instead of 1.3."""
    assert short(dataclasses.replace(PERFECT, workload="awaits", p99=0.27)) == []


def test_step_counts_what_was_sent_in_time_after_the_step():
    """Late answers, and those to earlier requests, do not count."""
    records = [record(4.9, 200), record(5.0, 200), record(6.0, 200, 0.6), record(7.0, 503)]
    assert step_share(records, 5.0, 15.0, best=1.0) == pytest.approx(0.1)


def test_last_refusal_counts_from_the_end_of_the_overload():
    """Refusals during it are as they should be."""
    assert last_refusal([record(9.0, 503), record(12.0, 200)], 10.0) == 0.0
    assert last_refusal([record(9.0, 503), record(12.5, 503)], 10.0) == pytest.approx(2.5)


def test_the_warm_up_is_cut_off():
    """What was sent in it is gone, and times count from its end."""
    assert [each.intended for each in after([record(1.0, 200), record(2.5, 200)], 2.0)] == [0.5]


def test_drills_have_goals():
    """A slow probe is short by its latency."""
    measures = {"new_p99": 0.3, "kept_p99": 0.1, "probes_not_200": 0.0, "unanswered": 0.0}
    drilled = Drilled("probes", "compute", "uvloop", "kept", "ours", measures, [], 0.0, "then")
    assert [goal.short for goal in drill_goals(drilled) if not goal.met] == ["300 ms for 250 ms"]


def test_results_survive_the_file(tmp_path):
    """What is loaded is what was saved, and NaN stays NaN."""
    results = Results()
    results.cells[PERFECT.cell] = PERFECT
    refused_none = dataclasses.replace(PERFECT, load=0.8, refused=0.0, refused_p99=math.nan)
    results.cells[refused_none.cell] = refused_none
    results.save(tmp_path / "r.json")
    loaded = Results.load(tmp_path / "r.json")
    assert loaded.cells[PERFECT.cell] == PERFECT
    assert math.isnan(loaded.cells[refused_none.cell].refused_p99)


def test_the_page_says_what_is_short(tmp_path):
    """Goals, figures and versions are on it; a plot needs more than one load."""
    results = Results()
    for load, in_time in ((2.0, 98.0), (5.0, 49.0)):
        result = dataclasses.replace(PERFECT, load=load, in_time=in_time)
        results.cells[result.cell] = result
    pictures = write_plots(results, tmp_path)
    text = write_page(results, tmp_path / "overload.md", pictures).read_text()
    assert "| 98 % of G | 1 of 2 | 1 |" in text
    assert "50.0% of 98%" in text
    assert "![overload kept](overload-kept.png)" in text
    assert results.machine["python"] in text
