from __future__ import annotations

import math

import pytest

from benchmarks.load import Record, summarize
from benchmarks.load.summary import percentile


def record(intended, outcome, latency=0.01, lag=0.0):
    made = Record(intended, lag)
    made.outcome = outcome
    made.latency = latency
    return made


def test_every_request_is_counted_once():
    """200s, 503s and requests without an answer add up; other answers are in the outcomes."""
    records = [
        record(0.0, 200, 0.1),
        record(0.5, 200, 0.9),
        record(1.0, 503, 0.02),
        record(1.5, 500, 0.02),
        record(2.0, "timeout", 5.0),
        record(2.5, "reset", 0.3),
    ]
    summary = summarize(records, bound=0.5)
    assert (summary.offered, summary.answered, summary.in_time) == (6, 2, 1)
    assert (summary.refused, summary.unanswered) == (1, 2)
    assert summary.outcomes == {"200": 2, "500": 1, "503": 1, "reset": 1, "timeout": 1}
    assert (summary.p50, summary.p99) == (0.1, 0.9)
    assert summary.refused_p99 == 0.02
    assert summary.seconds == pytest.approx(3.0)
    assert not summary.disturbed


def test_time_series_goes_by_intended_time():
    """A slow answer belongs to the second in which it was asked for."""
    records = [record(0.2, 200, 3.0), record(2.1, 200, 0.1), record(2.2, 503, 0.1)]
    slots = summarize(records, bound=0.5).slots
    assert [slot.begin for slot in slots] == [0.0, 1.0, 2.0]
    assert [slot.offered for slot in slots] == [1, 0, 2]
    assert [slot.in_time for slot in slots] == [0, 0, 1]
    assert slots[0].p50 == 3.0
    assert math.isnan(slots[1].p50)


@pytest.mark.parametrize(
    "records",
    [
        [record(i / 100, 200, lag=0.2 if i > 90 else 0.0) for i in range(100)],
        [record(0.0, 200), record(0.1, "unsent")],
    ],
    ids=["late", "out of sockets"],
)
def test_a_run_that_the_generator_held_up_is_flagged(records):
    """Late sends, or requests it could not send at all, make a run one not to be trusted."""
    summary = summarize(records)
    assert summary.disturbed
    assert "DISTURBED" in str(summary)


def test_nothing_is_summed_up_without_a_crash():
    """A run without any 200 has no latency, and says so with a dash."""
    assert "200         0, p50 -" in str(summarize([]))


def test_percentiles_are_nearest_rank():
    """A percentile is one of the values, never an average of two."""
    values = [float(i) for i in range(1, 101)]
    assert [percentile(values, p) for p in (0, 50, 99, 100)] == [1.0, 50.0, 99.0, 100.0]
    assert percentile([7.0], 50) == 7.0
