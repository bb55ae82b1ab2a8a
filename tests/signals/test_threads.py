"""Busy threads and process CPU, as a WSGI driver feeds them."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from resilience_mw.signals import threads
from resilience_mw.signals.threads import ThreadMeter, ThreadReading, pool_size, utilization

from .conftest import spin


def _readings(meter, *, work):
    before = meter.read(time.monotonic())
    work()
    return utilization(before, meter.read(time.monotonic()))


def test_busy_threads_over_the_pool():
    """Two of four threads busy for the whole window, one for half of it: 5/8."""
    meter = ThreadMeter(pool_size=4, cores=1000)
    before = meter.read(100.0)
    meter.enter(100.0, 1)
    meter.enter(100.0, 2)
    meter.enter(105.0, 3)
    after = meter.read(110.0)
    assert after.busy - before.busy == pytest.approx(25.0)
    assert utilization(before, after) == pytest.approx(25 / 40, abs=0.01)
    for _ in range(3):
        meter.exit(110.0)
    assert meter.read(120.0).busy == pytest.approx(after.busy)


def test_reports_out_of_order_add_up():
    """Times are taken before the lock, so a later report may carry an earlier time."""
    meter = ThreadMeter(pool_size=2, cores=1000)
    start = meter.read(50.0).busy
    meter.enter(52.0, 1)
    meter.enter(51.0, 2)
    meter.exit(60.0)
    meter.exit(59.0)
    assert meter.read(60.0).busy - start == pytest.approx(16.0)


def test_the_pool_is_what_was_seen_when_nobody_tells():
    """Distinct threads of the last minute, at least those busy now, at least one."""
    meter = ThreadMeter(cores=1)
    assert meter.read(100.0).pool == 1
    for thread in (1, 2, 3, 1):
        meter.enter(100.0, thread)
        meter.exit(100.5)
    assert meter.read(101.0).pool == 3
    meter.enter(150.0, 2)
    assert meter.read(165.0).pool == 1
    assert meter.read(999.0).pool == 1, "it is still busy, however long ago it entered"
    meter.pool_size = 8
    assert meter.read(1000.0).pool == 8
    meter.pool_size = 0
    assert meter.read(1000.0).pool == 1


def test_a_thread_a_request_does_not_fill_memory(monkeypatch):
    """Servers that make a thread (or a greenlet) for every request are remembered boundedly."""
    monkeypatch.setattr(threads, "_MAX_SEEN", 10)
    meter = ThreadMeter(cores=1)
    for thread in range(95):
        meter.enter(100.0 + thread, thread)
        meter.exit(100.0 + thread)
    assert meter.read(195.0).pool <= 10
    for thread in range(95):
        meter.enter(195.0, thread)
        meter.exit(195.0)
    assert meter.read(195.0).pool <= 10


def test_a_busy_cpu_counts_although_threads_are_idle():
    """Process CPU over the cores is the other half of the measure."""
    meter = ThreadMeter(pool_size=1000, cores=0.25)
    assert _readings(meter, work=lambda: spin(0.2)) > 0.5
    assert _readings(meter, work=lambda: time.sleep(0.3)) < 0.5


def test_cores_are_measured_unless_given():
    """The default is what this process may use."""
    assert ThreadMeter().cores > 0.0
    assert ThreadMeter(cores=3.5).cores == 3.5


def _reading(at, busy, cpu=0.0):
    return ThreadReading(at, busy, cpu, pool=4, cores=2.0)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (_reading(0.0, 0.0), _reading(1.0, 2.0), 0.5),
        (_reading(0.0, 0.0), _reading(1.0, 1.0, cpu=1.5), 0.75),
        (_reading(0.0, 0.0), _reading(1.0, 9.0), 1.0),
        (_reading(0.0, 5.0), _reading(1.0, 4.0), 0.0),
        (_reading(1.0, 0.0), _reading(1.0, 4.0), 0.0),
    ],
)
def test_utilization_is_the_larger_share(before, after, expected):
    """Within [0, 1]; an empty window is idle."""
    assert utilization(before, after) == expected


def test_worked_seconds_grow_by_utilization():
    """Half of the pool busy for ten seconds is five seconds of work; reading twice adds nothing."""
    meter = ThreadMeter(pool_size=2, cores=1000)
    now = time.monotonic()
    start = meter.worked(now)
    meter.enter(now, 1)
    assert meter.worked(now + 4.0) - start == pytest.approx(2.0, abs=0.1)
    assert meter.worked(now + 10.0) - start == pytest.approx(5.0, abs=0.1)
    assert meter.worked(now + 10.0) - start == pytest.approx(5.0, abs=0.1)
    assert meter.worked(now + 1.0) - start == pytest.approx(5.0, abs=0.1)


def test_a_real_pool():
    """Four sleeping threads of eight: half busy, at no CPU."""
    meter, lock = ThreadMeter(pool_size=8, cores=1000), threading.Lock()

    def request():
        with lock:
            meter.enter(time.monotonic(), threading.get_ident())
        time.sleep(0.4)
        with lock:
            meter.exit(time.monotonic())

    with ThreadPoolExecutor(4) as pool:
        for _ in range(4):
            pool.submit(request)
        time.sleep(0.1)
        with lock:
            before = meter.read(time.monotonic())
        time.sleep(0.1)
        with lock:
            after = meter.read(time.monotonic())
    assert 0.3 <= utilization(before, after) <= 0.6
    assert meter.read(time.monotonic()).busy == pytest.approx(1.6, abs=1.0)


def test_pool_sizes_that_servers_tell():
    """One without threads, an executor's workers, and None where nothing is known."""
    assert pool_size({"wsgi.multithread": False}) == 1
    assert pool_size({"wsgi.multithread": True}) is None
    with ThreadPoolExecutor(5) as pool:
        assert pool.submit(pool_size, {"wsgi.multithread": True}).result() == 5
    found = []
    thread = threading.Thread(target=lambda environ: found.append(pool_size(environ)), args=({},))
    thread.start()
    thread.join()
    assert found == [None]
