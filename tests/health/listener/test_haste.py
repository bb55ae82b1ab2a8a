"""Shorter turns of the interpreter: when, how long, and not against anybody's will."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from resilience_mw.health.listener.haste import CALM, LONG, SHORT, SOON, Haste

from .computing import computing
from .probing import until


@pytest.fixture(autouse=True)
def _usual() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.005)
    yield
    sys.setswitchinterval(before)


def is_short() -> bool:
    return sys.getswitchinterval() == pytest.approx(SHORT)


def test_only_long_waits_shorten_it():
    """One may be the system's doing, and one thread that computes makes none so long."""
    haste = Haste()
    for seconds in (0.005, 0.0, 2 * LONG, 0.0, 0.005, 0.005, 0.005, 0.005):
        haste.waited(seconds)
        assert not is_short()
    for _ in range(3):
        haste.waited(2 * LONG)
    assert is_short()


def test_it_is_set_back_after_a_calm_while():
    """And not while threads still compete."""
    haste = Haste()
    haste.waited(1.0)
    haste.waited(1.0)
    for _ in range(CALM - 1):
        haste.waited(0.0)
    haste.waited(SOON + 0.001)
    assert is_short()
    for _ in range(CALM):
        haste.waited(0.0)
    assert sys.getswitchinterval() == pytest.approx(0.005)


def test_what_somebody_sets_meanwhile_stays():
    """Also an interval that was short already."""
    haste = Haste()
    haste.waited(1.0)
    haste.waited(1.0)
    sys.setswitchinterval(0.02)
    haste.stop()
    assert sys.getswitchinterval() == pytest.approx(0.02)
    sys.setswitchinterval(0.0005)
    haste.waited(1.0)
    haste.waited(1.0)
    haste.stop()
    assert sys.getswitchinterval() == pytest.approx(0.0005)


def test_a_listener_among_threads_that_compute(opened):
    """It shortens the turns, and sets them back when it ends."""
    port, apart = opened()
    with computing():
        until(is_short)
        assert port.status() == 200
    apart.close()
    until(lambda: port.ask() is None)
    until(lambda: not is_short())
