from __future__ import annotations

import math

import pytest

from benchmarks.overload.theory import best_goodput, service_time

MS = 0.001


def test_goodput_is_what_the_formula_says():
    """1000/s offered at 10 ms a request and 50 us a refusal leave 95 % of the CPU to serve."""
    best = best_goodput(1000, capacity=100, service=10 * MS, refusal=0.05 * MS)
    assert best == pytest.approx((1 - 1000 * 0.05 * MS) / (10 * MS - 0.05 * MS))


def test_a_full_cpu_is_spent_on_both():
    """Serving G and refusing the rest takes exactly one CPU."""
    offered, service, refusal = 5000, 2 * MS, 0.1 * MS
    best = best_goodput(offered, capacity=500, service=service, refusal=refusal)
    assert best * service + (offered - best) * refusal == pytest.approx(1.0)


@pytest.mark.parametrize("offered", [50, 99])
def test_nobody_serves_more_than_is_offered(offered):
    """Below capacity the best is to serve everything."""
    assert best_goodput(offered, capacity=100, service=10 * MS, refusal=0.05 * MS) == offered


def test_another_bottleneck_bounds_it():
    """A pool that lets 100 a second through is the limit while the CPU idles."""
    assert best_goodput(1000, capacity=100, service=0.15 * MS, refusal=0.05 * MS) == 100


def test_refusing_alone_can_take_the_whole_cpu():
    """Once L r >= 1 nothing is left to serve."""
    assert best_goodput(20_000, capacity=1000, service=1 * MS, refusal=0.06 * MS) == 0


def test_refusals_as_dear_as_requests_cost_nothing_more():
    """Without a difference the formula has no meaning, and the capacity stands."""
    assert best_goodput(5000, capacity=1000, service=0.1 * MS, refusal=0.1 * MS) == 1000


def test_service_time_of_a_saturated_cpu_is_the_inverse_of_its_capacity():
    """A share of nearly one is one: clocks have a grain."""
    assert service_time(100, 0.97) == pytest.approx(10 * MS)


def test_service_time_elsewhere_is_the_cpu_that_was_used():
    """A pool's requests use little CPU, however long they take."""
    assert service_time(100, 0.02) == pytest.approx(0.2 * MS)
    assert not math.isnan(service_time(100, 0.0))
