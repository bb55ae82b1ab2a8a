"""The adaptive law on threads, which have no event loop whose turns could be counted."""

from __future__ import annotations

import pytest

from resilience_mw.core.laws import Adaptive

from .windows import window


def served(
    law: Adaptive, now: float, *, waited: float, arrivals: int, done: int = 10
) -> tuple[int, int]:
    """Feed one window of threads; returns how many were let in, and how many asked."""
    refused = sum(law.refuses(waited, 0) is not None for _ in range(arrivals))
    ended = [0.01] * min(done, arrivals - refused)
    law.update(window(now, turns=0, refused=refused, arrivals=arrivals, latencies=ended))
    return arrivals - refused, arrivals


def share_after(times: int, windows: int) -> float:
    """Return which share is let in once a queue that took so many windows to refuse is gone."""
    law = Adaptive()
    now = 100.0
    for _ in range(20):
        now += 0.1
        served(law, now, waited=0.0, arrivals=10)
    for _ in range(windows):
        now += 0.1
        served(law, now, waited=0.5, arrivals=10 * times)
    assert law.saturated
    admitted, asked = served(law, now + 0.1, waited=0.0, arrivals=1000 * times)
    return admitted / asked


@pytest.mark.parametrize("times", [2, 5, 10])
def test_threads_do_not_run_out_of_work_while_an_old_queue_is_refused(times):
    """Who comes from it has waited too long for a while, which says nothing of what can be done."""
    assert 0.6 / times <= share_after(times, 10) <= 1.1 / times


def test_what_they_could_do_once_is_forgotten():
    """When nothing ends for long, something else is wrong."""
    assert share_after(5, 80) < share_after(5, 10) / 4


def test_a_window_within_one_long_turn_is_no_thread():
    """Many requests that compute are one turn, in which a few windows may end."""
    law = Adaptive()
    now = 100.0
    for turns in (10, 10, 0, 0, 0, 0):
        now += 0.1
        assert law.refuses(0.05, 0) is None
        law.update(window(now, utilization=1.0, turns=turns, arrivals=9, latencies=[0.01] * 9))
    assert law.refuses(0.35, 0) == "waited"
