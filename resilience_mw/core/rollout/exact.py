"""Exact tests of whether one share is larger than another, for any number of samples."""

from __future__ import annotations

from math import exp, lgamma, log, log1p

NEGLIGIBLE = 1e-12
"""Share of a sum below which its next terms change nothing that matters."""


def p_more(hits: int, total: int, other_hits: int, other_total: int) -> float:
    """Return how likely so many hits are by chance if the other side is no better: Fisher's test.

    One-sided, exact for every size: given ``hits + other_hits`` hits among all, the hits of one
    side have a hypergeometric distribution (R. A. Fisher, "The Logic of Inductive Inference",
    1935). Returns 1.0 where this side does not have more than its share.
    """
    drawn, population = hits + other_hits, total + other_total
    if hits * population <= drawn * total:
        return 1.0
    term = exp(_choose(total, hits) + _choose(other_total, other_hits) - _choose(population, drawn))
    p, k, most = 0.0, hits, min(drawn, total)
    while True:
        p += term
        if k == most or term < NEGLIGIBLE * p:
            return min(1.0, p)
        term *= (total - k) * (drawn - k) / ((k + 1) * (other_total - drawn + k + 1))
        k += 1


def p_above(hits: int, total: int, share: float) -> float:
    """Return how likely so many hits are if each comes with chance ``share``: the binomial test.

    One-sided and exact. Returns 1.0 where there are no more hits than expected.
    """
    if hits <= share * total:
        return 1.0
    if share <= 0.0:
        return 0.0
    term = exp(_choose(total, hits) + hits * log(share) + (total - hits) * log1p(-share))
    p, k, odds = 0.0, hits, share / (1.0 - share)
    while True:
        p += term
        if k == total or term < NEGLIGIBLE * p:
            return min(1.0, p)
        term *= (total - k) / (k + 1) * odds
        k += 1


def _choose(n: int, k: int) -> float:
    """Return the logarithm of how many ways there are to choose ``k`` of ``n``."""
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
