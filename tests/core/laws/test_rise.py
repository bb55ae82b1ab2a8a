"""How steeply the wait rises."""

from __future__ import annotations

import pytest

from resilience_mw.core.laws.rise import LEAST, Rise


def fed(*waits, length=0.1):
    """Return a rise that has seen these least waits, one a window."""
    rise = Rise()
    for wait in waits:
        rise.update(wait, length)
    return rise


@pytest.mark.parametrize("load", [2.0, 5.0, 10.0])
def test_the_slope_tells_how_many_can_be_served(load):
    """At rho times the load the wait rises by 1 - 1/rho of the time, and 1/rho can be served."""
    rise = fed(*(0.1 * n * (1 - 1 / load) for n in range(1, 6)))
    assert rise.steep
    assert rise.share == pytest.approx(1 / load)
    assert rise.above(0.1)
    assert not rise.above(0.5)


def test_a_burst_is_not_steep_for_long():
    """Two windows, and then it falls."""
    assert not fed(0.06, 0.12).steep
    assert not fed(0.06, 0.12, 0.11, 0.17, 0.23).steep


def test_a_pause_is_one_step():
    """After a pause the wait is long, and falls."""
    assert not fed(0.0, 0.4, 0.3, 0.2, 0.1).steep


def test_a_window_without_requests_says_nothing():
    """It neither goes on with a rise nor ends it."""
    assert fed(0.08, 0.16, None, 0.24).steep


def test_somebody_is_always_let_in():
    """A wait that rises faster than time passes is not believed."""
    assert fed(1.0, 2.0, 3.0).share == LEAST
