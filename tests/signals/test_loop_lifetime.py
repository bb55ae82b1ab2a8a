"""A meter comes and goes without harm to its loop, or to who else wraps it."""

from __future__ import annotations

import asyncio
import gc
import time
import warnings
import weakref

import pytest

from resilience_mw.signals.loop import attach, utilization

from .conftest import LOOPS, spin

NOW = time.monotonic


def _selector(loop):
    return loop._selector


def test_one_meter_a_loop(run):
    """The second user gets the first one's meter, and the loop is restored by the last."""

    async def main():
        first, second = attach(), attach(asyncio.get_running_loop())
        assert first is second
        first.detach()
        before = second.read(NOW())
        spin(0.05)
        assert utilization(before, second.read(NOW())) > 0.9
        second.detach()
        assert not first.attached
        assert attach() is not first

    run(main)


def test_detach_restores_the_selector():
    """Nothing is left on the selector, however often detach is called."""

    async def main():
        selector = _selector(asyncio.get_running_loop())
        meter = attach()
        assert "select" in vars(selector)
        meter.detach()
        meter.detach()
        assert "select" not in vars(selector)
        await asyncio.sleep(0.01)

    asyncio.run(main())


def test_a_detached_meter_reads_idle(run):
    """Its counters stand still, so a forgotten reader sees no overload."""

    async def main():
        meter = attach()
        spin(0.05)
        meter.detach()
        before = meter.read(NOW())
        assert before.busy >= 0.05
        spin(0.05)
        assert meter.turn_started() is None or meter.source == "select"
        return utilization(before, meter.read(NOW()))

    assert run(main) == 0.0


def test_a_wrapper_before_ours_is_put_back():
    """Detaching gives the loop back as it was found, somebody else's wrapper included."""

    async def main():
        selector = _selector(asyncio.get_running_loop())
        original, calls = selector.select, []

        def theirs(timeout=None):
            calls.append(timeout)
            return original(timeout)

        selector.select = theirs
        meter = attach()
        await asyncio.sleep(0)
        meter.detach()
        assert selector.select is theirs
        await asyncio.sleep(0)
        assert len(calls) >= 2

    asyncio.run(main())


def test_a_wrapper_on_top_of_ours_survives():
    """Detaching leaves a pass-through below somebody else's wrapper, and stops counting."""

    async def main():
        selector = _selector(asyncio.get_running_loop())
        meter = attach()
        ours, calls = selector.select, []

        def theirs(timeout=None):
            calls.append(timeout)
            return ours(timeout)

        selector.select = theirs
        meter.detach()
        assert selector.select is theirs
        turns = meter.read(NOW()).turns
        await asyncio.sleep(0.01)
        assert calls
        assert meter.read(NOW()).turns == turns

        again = attach()
        before = again.read(NOW())
        await asyncio.sleep(0.2)
        assert utilization(before, again.read(NOW())) < 0.4
        again.detach()
        assert selector.select is theirs

    asyncio.run(main())


def test_a_meter_that_was_cut_off_heals():
    """Somebody who restores the select of before us must not make the loop look overloaded."""

    async def main():
        selector = _selector(asyncio.get_running_loop())
        meter = attach()
        await asyncio.sleep(0.02)
        before = meter.read(NOW())
        del selector.select
        await asyncio.sleep(0.2)
        healed = meter.read(NOW())
        assert utilization(before, healed) < 0.1
        spin(0.1)
        busy = meter.read(NOW())
        assert utilization(healed, busy) > 0.9
        await asyncio.sleep(0.2)
        assert utilization(busy, meter.read(NOW())) < 0.4
        meter.detach()
        assert "select" not in vars(selector)

    asyncio.run(main())


def test_an_error_in_select_does_not_leave_the_loop_waiting():
    """Ctrl-C arrives inside of select: the meter must not count from there on as idle."""

    async def main():
        selector = _selector(asyncio.get_running_loop())
        failing = iter([True])

        def fails_once(timeout=None):
            if next(failing, False):
                raise KeyboardInterrupt
            return type(selector).select(selector, timeout)

        selector.select = fails_once
        meter = attach()
        with pytest.raises(KeyboardInterrupt):
            selector.select(1.0)
        before = meter.read(NOW())
        spin(0.05)
        return utilization(before, meter.read(NOW()))

    assert asyncio.run(main()) > 0.9


@pytest.mark.parametrize("kind", LOOPS)
def test_a_closed_loop_is_never_asked_again(kind):
    """Reading after close neither raises nor touches freed memory; it reads idle."""
    loop = LOOPS[kind]()

    async def main():
        meter = attach()
        spin(0.02)
        return meter

    meter = loop.run_until_complete(main())
    loop.close()
    before = meter.read(NOW())
    assert utilization(before, meter.read(before.at + 1.0)) == 0.0
    assert meter.turn_started() is None or kind == "asyncio"
    del loop
    gc.collect()
    assert utilization(before, meter.read(before.at + 1.0)) == 0.0
    meter.detach()
    assert utilization(meter.read(1.0), meter.read(2.0)) == 0.0


@pytest.mark.parametrize(
    ("kind", "closed"),
    # A forgotten uvloop lives for ever without us too: its handles are no garbage to Python.
    [("asyncio", True), ("asyncio", False), ("uvloop", True)],
)
def test_a_loop_leaves_nothing_behind(kind, closed):
    """Neither the meter of a closed loop nor that of a forgotten one keeps anything alive."""
    loop = LOOPS[kind]()

    async def main():
        return weakref.ref(attach())

    meter = loop.run_until_complete(main())
    alive = weakref.ref(loop)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        if closed:
            loop.close()
        del loop
        gc.collect()
    assert alive() is None
    assert meter() is None


def test_a_held_meter_does_not_hold_its_loop():
    """A guard may outlive the loop that it measured."""

    async def main():
        return attach(), weakref.ref(asyncio.get_running_loop())

    meter, loop = asyncio.run(main())
    gc.collect()
    assert loop() is None
    assert utilization(meter.read(NOW()), meter.read(NOW() + 1)) == 0.0
    meter.detach()


def test_detaching_from_a_selector_that_is_gone():
    """Its loop was closed long ago: there is nothing left to restore."""

    async def main():
        return attach()

    meter = asyncio.run(main())
    gc.collect()
    meter.detach()
    assert not meter.attached
