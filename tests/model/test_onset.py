"""The first seconds of an overload, and of a burst that is none."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from resilience_mw.core import AdaptiveGate
from resilience_mw.core.laws import Adaptive
from resilience_mw.testing import Load, Worker, compute, simulate, wait

from .workloads import WORKLOADS


def cheap(**limits: Any) -> Worker:
    """Return a worker with the costs of a raw ASGI app."""
    return Worker(parse=0.000_01, refuse=0.000_03, serve=0.000_2, **limits)


def gate():
    """Return the default gate, with a random of its own."""
    return AdaptiveGate(Adaptive(), random=Random(1).random)


@pytest.mark.parametrize("times", [5, 10])
@pytest.mark.parametrize("name", ["compute", "awaits", "io", "pool", "sync io"])
def test_the_first_second_of_an_overload(name, times):
    """It is not lost to requests that were let in before anything was known to be wrong."""
    workload = WORKLOADS[name]
    worker = cheap(**workload.worker)
    capacity = worker.capacity(workload.handler)
    load = Load(steps=[(3, 0.5 * capacity), (8, times * capacity)])
    result = simulate(workload.handler, load, worker, gate())
    most = worker.most(workload.handler, times * capacity)
    assert result.summary(0, 3).refused_share == 0
    assert result.summary(3, 4).goodput >= 0.8 * most
    assert result.summary(3, 11).goodput >= 0.98 * most


@pytest.mark.parametrize(
    ("seconds", "before", "after"), [(0.02, 20, 1500), (0.05, 20, 1000), (0.1, 20, 500)]
)
def test_a_burst_that_can_be_served_is_no_overload(seconds, before, after):
    """Traffic that grows many times within an instant waits a moment, and is served."""
    handler = compute(0.000_15) + wait(seconds) + compute(0.000_15)
    result = simulate(handler, Load(steps=[(5, before), (5, after)]), cheap(), gate())
    assert result.summary().refused_share == 0
    assert result.summary(5, 6).p99 < seconds + 0.2


def test_a_start_under_full_traffic_is_no_overload():
    """A fresh worker takes all it can bear from its first request on."""
    handler = compute(0.000_15) + wait(0.1) + compute(0.000_15)
    result = simulate(handler, Load(steps=[(5, 1500)]), cheap(), gate())
    assert result.summary().refused_share == 0


@pytest.mark.parametrize("times", [2, 5, 10])
@pytest.mark.parametrize("name", ["wsgi compute", "wsgi io"])
def test_the_first_second_of_an_overload_of_threads(name, times):
    """A wait that rises steeply is believed before it has stood for half a second."""
    workload = WORKLOADS[name]
    worker = cheap(**workload.worker)
    capacity = worker.capacity(workload.handler)
    load = Load(steps=[(3, 0.5 * capacity), (8, times * capacity)])
    threads = AdaptiveGate(Adaptive(), max_queue=0, random=Random(1).random)
    result = simulate(workload.handler, load, worker, threads)
    most = worker.most(workload.handler, times * capacity)
    assert result.summary(0, 3).refused_share == 0
    assert result.summary(3, 4).goodput >= 0.8 * most
    assert result.summary(3, 11).p99 < 0.4
