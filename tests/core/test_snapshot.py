"""What a guard says about itself."""

from __future__ import annotations

import dataclasses

import pytest

from resilience_mw.core import DeadlinePolicy, Gate, HealthPolicy, Snapshot
from resilience_mw.core.snapshot import summarize

from .requests import Request


def test_the_single_numbers_are_those_of_the_innermost_gate():
    """It is the one that decides how many run; refusals and queues are summed up."""
    outer, inner = Gate(5, name="outer"), Gate(1, max_queue=1, name="inner")
    for gate in (outer, inner):
        for _ in range(3):
            gate.enter(Request())
    deadline = DeadlinePolicy(1.0)
    deadline.expired = 4
    row = (HealthPolicy(), deadline, outer, inner)
    snapshot = summarize(tuple(policy.snapshot() for policy in row), websockets=2)
    assert (snapshot.limit, snapshot.inflight, snapshot.queued, snapshot.admitted) == (1, 1, 1, 1)
    assert snapshot.refused == {"queue_full": 1, "deadline": 4}
    assert (snapshot.websockets, len(snapshot.policies)) == (2, 4)


def test_refusals_of_the_same_reason_are_added():
    """Whoever refused."""
    outer, inner = Gate(0), Gate(0)
    outer.enter(Request())
    inner.enter(Request())
    inner.enter(Request())
    assert summarize((outer.snapshot(), inner.snapshot())).refused == {"limit": 3}


def test_without_a_gate_there_is_no_limit():
    """None, rather than a number that means nothing; custom policies may say nothing."""
    snapshot = summarize((None, HealthPolicy().snapshot(), DeadlinePolicy().snapshot()))
    assert (snapshot.limit, snapshot.inflight, snapshot.refused) == (None, 0, {})
    assert snapshot.latency is None


def test_snapshots_are_frozen():
    """They are handed to whoever asks."""
    for snapshot in (Snapshot(), Gate(1).snapshot(), HealthPolicy().snapshot()):
        for field in dataclasses.fields(snapshot):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(snapshot, field.name, 5)


def test_latency_is_the_smoothed_latency():
    """Under its short name."""
    assert Snapshot(smoothed_latency=0.25).latency == 0.25
