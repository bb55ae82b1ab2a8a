"""Lag of a loop from a tick that somebody runs anyway."""

from __future__ import annotations

import asyncio
import time

from resilience_mw.signals.lag import Lag


def test_nothing_is_late_before_the_first_tick():
    """A tick that was never due is not late."""
    assert Lag(0.1).read(1000.0) == 0.0


def test_lateness_of_the_last_tick():
    """A tick due at 1.0 that ran at 1.3 was 0.3 s late, until the next one is overdue by more."""
    lag = Lag(0.1)
    lag.tick(due=1.0, now=1.3)
    assert round(lag.read(1.35), 6) == 0.3
    assert round(lag.read(1.6), 6) == 0.3
    assert round(lag.read(2.4), 6) == 1.0


def test_a_punctual_tick_is_not_late():
    """Clocks that disagree by a hair do not make lag negative."""
    lag = Lag(0.1)
    lag.tick(due=1.0, now=0.999)
    assert lag.read(1.0) == 0.0


def test_a_tick_that_rests_is_not_late():
    """Whoever stops ticking says so."""
    lag = Lag(0.1)
    lag.tick(due=1.0, now=1.3)
    lag.stop()
    assert lag.read(50.0) == 0.0


def test_a_blocked_loop_shows_in_the_tick(run):
    """A tick every 20 ms finds a loop that was blocked for 200 ms late by most of that."""

    async def main():
        loop, lag, period = asyncio.get_running_loop(), Lag(0.02), 0.02

        def tick(due):
            now = time.monotonic()
            lag.tick(due, now)
            loop.call_later(period, tick, now + period)

        tick(time.monotonic())
        await asyncio.sleep(0.05)
        time.sleep(0.2)  # noqa: ASYNC251
        overdue = lag.read(time.monotonic())
        await asyncio.sleep(0)
        return overdue, lag.read(time.monotonic())

    overdue, late = run(main)
    assert 0.1 < overdue < 5.0
    assert 0.1 < late < 5.0
