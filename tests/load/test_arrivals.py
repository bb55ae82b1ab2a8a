from __future__ import annotations

import itertools

import pytest

from benchmarks.load import Phase, intended_times


def test_constant_arrivals_are_evenly_spaced():
    """A constant rate leaves the same gap between any two requests."""
    times = list(intended_times([Phase(4, 1.0)]))
    assert times == [0.0, 0.25, 0.5, 0.75]


def test_phases_follow_one_another():
    """The second phase begins where the first has ended, at its own rate."""
    times = list(intended_times([Phase(2, 1.0), Phase(10, 0.5)]))
    assert times[:2] == [0.0, 0.5]
    assert times[2:] == pytest.approx([1.0, 1.1, 1.2, 1.3, 1.4])


def test_poisson_arrivals_have_the_rate_and_the_variance():
    """Gaps are exponential: their deviation equals their mean, and the count fits the rate."""
    times = list(intended_times([Phase(1000, 20.0)], "poisson"))
    assert times == sorted(times)
    assert times[-1] < 20.0
    assert len(times) == pytest.approx(20_000, rel=0.05)
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    mean = sum(gaps) / len(gaps)
    deviation = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
    assert deviation == pytest.approx(mean, rel=0.05)


def test_a_seed_repeats_itself():
    """The same seed gives the same arrivals, another seed others."""
    phases = [Phase(100, 1.0)]
    first = list(intended_times(phases, "poisson", seed=3))
    assert first == list(intended_times(phases, "poisson", seed=3))
    assert first != list(intended_times(phases, "poisson", seed=4))
