"""Event-loop utilization and turns, on real loops."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
import uvloop

from resilience_mw.signals.asyncio_loop import SelectMeter
from resilience_mw.signals.loop import LoopReading, attach, utilization

from .conftest import spin

NOW = time.monotonic


async def _work(share, seconds):
    """Keep the loop busy for a share of the time, in slices of 10 ms."""
    end = NOW() + seconds
    while NOW() < end:
        spin(0.01 * share)
        await asyncio.sleep(0.01 * (1 - share))


def test_source_names_what_is_measured():
    """asyncio is measured at its selector, uvloop at libuv."""

    async def source():
        return attach().source

    assert asyncio.run(source()) == "select"
    assert uvloop.run(source()) == "uv"


def test_half_busy_loop_reads_about_a_half(run):
    """A window after long idleness shows that window alone."""

    async def main():
        meter = attach()
        await asyncio.sleep(0.4)
        before = meter.read(NOW())
        await _work(0.5, 0.4)
        return utilization(before, meter.read(NOW()))

    assert 0.3 < run(main) < 0.75


def test_saturated_loop_reads_one(run):
    """100 % work after long idleness reads above 0.9 in its own window."""

    async def main():
        meter = attach()
        await asyncio.sleep(0.4)
        before = meter.read(NOW())
        await _work(1.0, 0.3)
        return utilization(before, meter.read(NOW()))

    assert run(main) > 0.9


def test_idle_loop_reads_nearly_zero(run):
    """Waiting is not work."""

    async def main():
        meter = attach()
        before = meter.read(NOW())
        await asyncio.sleep(0.4)
        return utilization(before, meter.read(NOW()))

    assert run(main) < 0.3


def test_blocking_callback_counts_before_it_ends(run):
    """A read in the middle of a long callback counts the part that has passed as busy."""

    async def main():
        meter = attach()
        await asyncio.sleep(0.1)
        before = meter.read(NOW())
        time.sleep(0.4)  # noqa: ASYNC251
        return utilization(before, meter.read(NOW()))

    assert run(main) > 0.95


def test_turns_are_counted(run):
    """Every pass through the loop is one turn."""

    async def main():
        meter = attach()
        before = meter.read(NOW()).turns
        for _ in range(50):
            await asyncio.sleep(0)
        return meter.read(NOW()).turns - before

    assert 50 <= run(main) <= 60


def test_a_request_waited_at_least_since_the_turn_before(run):
    """A callback finds the bound at or before the moment it was scheduled, and never too early."""

    async def main():
        meter = attach()
        loop = asyncio.get_running_loop()
        found = loop.create_future()

        def schedule():
            scheduled = NOW()
            loop.call_soon(lambda: found.set_result((scheduled, meter.turn_started(), NOW())))
            time.sleep(0.1)

        await asyncio.sleep(0.05)
        loop.call_soon(schedule)
        return await found

    scheduled, started, now = run(main)
    assert started <= now
    assert started <= scheduled or now - started < 0.1, "uvloop tells only of the turn that runs"


def test_the_start_of_a_turn_stays_while_the_turn_lasts(run):
    """Neither work nor timers set in a turn move its start."""

    async def main():
        meter = attach()
        loop = asyncio.get_running_loop()
        starts = []

        def callback():
            starts.append(meter.this_turn_started())
            time.sleep(0.05)
            loop.call_later(60, callback).cancel()

        await asyncio.sleep(0.02)
        for _ in range(3):
            loop.call_soon(callback)
        await asyncio.sleep(0)
        return starts, NOW()

    starts, now = run(main)
    assert starts == [starts[0]] * 3
    assert now - starts[0] >= 0.15 - 0.001


def test_asyncio_tells_two_turns_apart():
    """The timer ended the wait in one turn, and its task runs in the next."""

    async def main():
        meter = attach()
        await asyncio.sleep(0.02)
        middle = NOW()
        await asyncio.sleep(0.02)
        return meter.turn_started(), middle, meter.this_turn_started()

    before, middle, current = asyncio.run(main())
    assert middle < before < current


def test_another_thread_sees_a_waiting_loop_as_idle():
    """An exporter's thread that reads while the loop waits must not count the wait as work."""

    async def main():
        meter = attach()
        readings = []

        def read_twice():
            time.sleep(0.05)
            readings.append(meter.read(NOW()))
            time.sleep(0.2)
            readings.append(meter.read(NOW()))

        thread = threading.Thread(target=read_twice)
        thread.start()
        await asyncio.sleep(0.4)
        thread.join()
        return utilization(*readings)

    assert asyncio.run(main()) < 0.2


def test_another_thread_gets_the_last_reading_of_libuv():
    """libuv is asked by its own thread only; others read what that thread read last."""

    async def main():
        meter = attach()
        last = meter.read(NOW())
        found = []
        thread = threading.Thread(target=lambda: found.append(meter.read(NOW())))
        thread.start()
        thread.join()
        return last, found[0]

    last, found = uvloop.run(main())
    assert (found.busy, found.turns) == (last.busy, last.turns)
    assert found.at > last.at


def test_a_proactor_is_measured_like_a_selector():
    """Whatever has a select and no map to tell that it is closed (Windows)."""

    class Proactor:
        def select(self, timeout=None):
            time.sleep(timeout or 0.0)
            return []

    proactor = Proactor()
    meter = SelectMeter(proactor)
    meter.retain()
    before = meter.read(NOW())
    proactor.select(0.1)
    proactor.select()
    after = meter.read(NOW())
    assert utilization(before, after) < 0.5
    assert after.turns == 2
    meter.detach()
    assert "select" not in vars(proactor)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (LoopReading(0.0, 0.0, 0), LoopReading(2.0, 1.0, 9), 0.5),
        (LoopReading(0.0, 0.0, 0), LoopReading(1.0, 1.1, 9), 1.0),
        (LoopReading(0.0, 1.0, 0), LoopReading(1.0, 0.5, 9), 0.0),
        (LoopReading(1.0, 0.0, 0), LoopReading(1.0, 5.0, 9), 0.0),
        (LoopReading(2.0, 0.0, 0), LoopReading(1.0, 5.0, 9), 0.0),
    ],
)
def test_utilization_is_a_share(before, after, expected):
    """It stays within [0, 1], and an empty window is idle."""
    assert utilization(before, after) == expected
