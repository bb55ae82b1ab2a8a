"""When a monitor begins and ends, and what a fork makes of it."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading

import pytest

from benchmarks.process import ROOT
from resilience_mw.health import Check, Monitor
from tests.health.core.waiting import only, until


def passes() -> None:
    """Pass."""


async def passes_later() -> None:
    await asyncio.sleep(0)


def test_closing_ends_its_threads():
    """All of them, and it may begin again."""
    before = set(threading.enumerate())
    monitor = Monitor({"db": Check(passes, interval=0.01)})
    for _ in range(3):
        monitor.start()
        monitor.start()
        until(lambda: monitor.ready)
        monitor.close()
        monitor.close()
        until(lambda: set(threading.enumerate()) <= before)
    monitor.touch()
    until(lambda: monitor.ready)
    monitor.close()


def test_dropping_it_ends_its_threads():
    """Whoever drops a guard has dropped its checks."""
    before = set(threading.enumerate())
    kept = [Monitor({"db": Check(passes, interval=0.01)})]
    kept[0].start()
    until(lambda: kept[0].ready)
    kept.clear()
    gc.collect()
    until(lambda: set(threading.enumerate()) <= before)


@pytest.mark.parametrize("touched", [False, True])
def test_a_forked_child_asks_for_itself(touched: bool):
    """At once if nobody has asked the parent, as under a preloading server; else when asked."""
    command = [sys.executable, "-m", "tests.health.core.forked", str(touched)]
    assert subprocess.run(command, cwd=ROOT, timeout=60, check=False).returncode == 0


def test_a_loop_that_has_ended_fails_what_runs_in_it():
    """An app's pools are of no use in another loop, so nobody tries."""
    loop = asyncio.new_event_loop()
    loop.close()
    monitor = Monitor({"db": Check(passes_later, interval=0.01)})
    monitor.start(loop)
    until(lambda: only(monitor).reason == "no event loop")
    monitor.close()
