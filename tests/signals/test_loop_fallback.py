"""What is measured on loops that show nothing."""

from __future__ import annotations

import _ctypes
import asyncio
import os
import threading
import time

import pytest
import uvloop

from resilience_mw.signals import uvloop_loop
from resilience_mw.signals.asyncio_loop import select_meter
from resilience_mw.signals.cpu_loop import CpuMeter
from resilience_mw.signals.loop import attach, utilization
from resilience_mw.signals.meter import LoopMeter

from .conftest import spin

NOW = time.monotonic


def _window(meter, seconds=0.1):
    before = meter.read(NOW())
    spin(seconds)
    return utilization(before, meter.read(NOW()))


class OwnTurns(asyncio.SelectorEventLoop):
    """A loop that turns in a way of its own."""

    def _run_once(self):
        super()._run_once()  # type: ignore[misc]


class OwnRun(asyncio.SelectorEventLoop):
    """A loop that is run by somebody else, as Qt bridges do."""

    def run_forever(self):
        super().run_forever()


@pytest.mark.parametrize("kind", [OwnTurns, OwnRun])
def test_foreign_loops_are_measured_by_cpu(kind):
    """A selector that may never be called must not read as 100 %."""

    async def main():
        meter = attach()
        assert meter is attach()
        assert meter.source == "cpu"
        assert meter.turn_started() is None
        assert meter.this_turn_started() is None
        before = meter.read(NOW())
        await asyncio.sleep(0.3)
        idle = utilization(before, meter.read(NOW()))
        return idle, _window(meter)

    with asyncio.Runner(loop_factory=kind) as runner:
        idle, busy = runner.run(main())
    assert idle < 0.3
    assert busy > 0.5


def test_a_selector_that_takes_no_wrapper_is_left_alone():
    """A loop without a selector, or with one in C, has no select meter."""
    loop = asyncio.new_event_loop()
    selector = loop._selector  # type: ignore[attr-defined]
    try:
        for odd in (None, object()):
            loop._selector = odd  # type: ignore[attr-defined]
            assert select_meter(loop) is None
    finally:
        loop._selector = selector  # type: ignore[attr-defined]
        loop.close()


def test_without_any_loop_there_is_still_a_measure():
    """Outside of asyncio (Trio, or no loop at all) CPU time is all there is."""
    meter = attach()
    assert meter.source == "cpu"
    assert _window(meter) > 0.5
    meter.detach()
    assert _window(meter, 0.02) == 0.0


@pytest.mark.parametrize("broken", ["no symbols", "refused", "not a library"])
def test_a_uvloop_without_libuvs_metrics_falls_back(monkeypatch, tmp_path, broken):
    """Stripped wheels lack the symbols, and another libuv may refuse."""
    if broken == "no symbols":
        monkeypatch.setattr(uvloop.loop, "__file__", _ctypes.__file__)
    elif broken == "refused":
        monkeypatch.setattr(uvloop_loop, "_IDLE_TIME", 9999)
    else:
        text = tmp_path / "loop.so"
        text.write_text("no library")
        monkeypatch.setattr(uvloop.loop, "__file__", str(text))

    async def main():
        return attach().source

    assert uvloop.run(main()) == "cpu"


def test_uvloop_is_not_imported_to_find_out(monkeypatch):
    """A process without uvloop stays without it."""
    monkeypatch.delitem(__import__("sys").modules, "uvloop")

    async def main():
        return attach().source

    assert asyncio.run(main()) == "select"


@pytest.mark.parametrize("content", [None, b"", b"1 2", b"1 nonsense 3"])
def test_the_run_queue_may_be_unreadable(tmp_path, content):
    """Without a readable schedstat the CPU time alone remains."""
    path = tmp_path / "schedstat"
    if content is not None:
        path.write_bytes(content)
    meter = CpuMeter(str(path))
    meter.retain()
    before = meter.read(NOW())
    start = time.thread_time()
    spin(0.05)
    used = time.thread_time() - start
    assert meter.read(NOW()).busy - before.busy >= used
    meter.detach()


def test_waiting_for_the_cpu_counts(tmp_path):
    """The second field of schedstat is added: nanoseconds in the run queue."""
    path = tmp_path / "schedstat"
    path.write_bytes(b"1 1000000000 1")
    meter = CpuMeter(str(path))
    meter.retain()
    before = meter.read(NOW())
    path.write_bytes(b"1 3000000000 1")
    assert meter.read(NOW()).busy - before.busy == pytest.approx(2.0, abs=0.5)
    path.write_bytes(b"gone")
    assert meter.read(NOW()).busy - before.busy >= 2.0, "never backwards"
    meter.detach()


def test_another_thread_gets_the_last_reading():
    """Thread CPU time is the caller's own, so a stranger's would mean nothing."""
    meter = CpuMeter()
    meter.retain()
    last = meter.read(NOW())
    found = []

    def work_and_read():
        spin(0.05)
        found.append(meter.read(NOW()))

    thread = threading.Thread(target=work_and_read)
    thread.start()
    thread.join()
    assert found[0].busy == last.busy
    meter.detach()


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors")
def test_a_meter_holds_no_descriptor_after_its_end():
    """Neither a detached nor a forgotten meter leaks its file."""

    def descriptors():
        return len(os.listdir("/proc/self/fd"))

    before = descriptors()
    meter = attach()
    meter.detach()
    forgotten = CpuMeter()
    del forgotten
    assert descriptors() == before


def test_a_meter_must_say_how_it_reads():
    """The base class measures nothing."""
    meter = LoopMeter()
    with pytest.raises(NotImplementedError):
        meter.read(0.0)
