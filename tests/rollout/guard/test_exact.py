"""The exact tests are exact."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resilience_mw.core.rollout.exact import p_above, p_more


def fisher(hits: int, total: int, other_hits: int, other_total: int) -> Fraction:
    """Return the tail by counting all ways to deal out the hits."""
    drawn = hits + other_hits
    ways = sum(
        comb(total, k) * comb(other_total, drawn - k) for k in range(hits, min(drawn, total) + 1)
    )
    return Fraction(ways, comb(total + other_total, drawn))


@given(st.data())
def test_fishers_test_counts_all_ways(data):
    """To twelve digits, wherever this side has more than its share, and 1 elsewhere."""
    total, other_total = data.draw(st.integers(1, 80)), data.draw(st.integers(1, 80))
    hits, other_hits = data.draw(st.integers(0, total)), data.draw(st.integers(0, other_total))
    p = p_more(hits, total, other_hits, other_total)
    if hits * other_total > other_hits * total:
        assert p == pytest.approx(float(fisher(hits, total, other_hits, other_total)), rel=1e-9)
    else:
        assert p == 1.0


@given(st.integers(1, 100), st.data())
def test_the_binomial_test_adds_all_outcomes(total, data):
    """To twelve digits, wherever there are more than expected, and 1 elsewhere."""
    hits, share = data.draw(st.integers(0, total)), data.draw(st.sampled_from([0.01, 0.05, 0.5]))
    p = p_above(hits, total, share)
    part = Fraction(share)
    exact = sum(
        comb(total, k) * part**k * (1 - part) ** (total - k) for k in range(hits, total + 1)
    )
    assert p == (pytest.approx(float(exact), rel=1e-9) if hits > share * total else 1.0)


def test_extremes_are_no_trouble():
    """Nothing overflows, and what cannot be by chance has no chance."""
    assert p_more(1_000_000, 1_000_000, 0, 1_000_000) == 0.0
    assert 0.4 < p_more(500_100, 1_000_000, 500_000, 1_000_000) < 0.5
    assert p_more(0, 0, 0, 0) == 1.0
    assert p_more(5, 5, 0, 0) == 1.0
    assert p_above(1, 10, 0.0) == 0.0
    assert p_above(0, 10, 0.0) == 1.0
    assert p_above(10, 10, 0.1) == pytest.approx(1e-10)
