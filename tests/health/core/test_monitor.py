"""What the monitor makes of what checks do."""

from __future__ import annotations

import asyncio
import gc
import itertools
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from resilience_mw.health import Check, CheckFailed, Monitor
from tests.health.core.waiting import asking, only, until


def passes() -> None:
    """Pass."""


def says_no() -> bool:
    return False


def fails() -> None:
    raise CheckFailed("status 500")


def breaks() -> None:
    raise ValueError("password is hunter2")


async def hangs() -> None:
    await asyncio.Event().wait()


async def passes_later() -> None:
    await asyncio.sleep(0)


async def breaks_later() -> None:
    raise ZeroDivisionError


def leaves() -> None:
    raise SystemExit(3)


def blocks() -> None:
    threading.Event().wait(30)


def returns_coroutine() -> object:
    return passes_later()


@pytest.mark.parametrize(
    ("probe", "reason"),
    [
        (passes, ""),
        (passes_later, ""),
        (returns_coroutine, ""),
        (says_no, "returned False"),
        (fails, "status 500"),
        (breaks, "ValueError"),
        (breaks_later, "ZeroDivisionError"),
        (leaves, "SystemExit"),
        (hangs, "timeout"),
        (blocks, "timeout"),
    ],
)
def test_every_end_has_its_reason(probe: Callable[[], object], reason: str):
    """It passes unless it raises, returns False or takes too long; no text of an error is kept."""
    with asking({"db": Check(probe, timeout=0.1, interval=60)}) as monitor:
        until(lambda: only(monitor).observed_at)
        result = only(monitor)
    assert (result.name, result.reason, result.passing) == ("db", reason, not reason)
    assert monitor.ready is not bool(reason)
    assert result.since <= time.time()


def test_what_was_not_asked_yet_does_not_pass():
    """An instance that does not know is not ready, if it depends on that."""
    assert Monitor({"db": passes}).ready is False
    assert only(Monitor({"db": passes})).reason == "not asked yet"
    assert Monitor({"db": Check(passes, critical=False)}).ready is True
    assert Monitor({}).ready is True


def test_only_critical_checks_count():
    """The others are shown, and that is all."""
    checks = {"db": Check(passes, interval=0.01), "mail": Check(fails, critical=False)}
    with asking(checks) as monitor:
        until(lambda: all(result.observed_at for result in monitor.results()))
        assert monitor.ready
        assert [result.passing for result in monitor.results()] == [True, False]


def test_fall_and_rise():
    """So many in a row turn it; the first answer counts at once."""
    answers = iter([True, False, False, True, False, False, False, True, True, *[True] * 1000])
    seen = []

    def probe() -> bool:
        seen.append(only(monitor).passing)
        return next(answers)

    monitor = Monitor({"db": Check(probe, fall=3, rise=2, interval=0.005, timeout=5)})
    monitor.start()
    until(lambda: len(seen) > 10)
    monitor.close()
    # What was known before each ask.
    assert seen[:10] == [False, True, True, True, True, True, True, False, False, True]


def test_a_check_that_hangs_is_asked_once_at_a_time():
    """While it hangs no second one is started, and it recovers when it returns."""
    running, most, asked = 0, 0, 0
    release = threading.Event()

    def probe() -> None:
        nonlocal running, most, asked
        asked += 1
        running += 1
        most = max(most, running)
        release.wait(30)
        running -= 1

    with asking({"db": Check(probe, interval=0.01, timeout=0.01)}) as monitor:
        until(lambda: only(monitor).reason == "timeout")
        first = only(monitor).observed_at
        until(lambda: only(monitor).observed_at != first)
        assert asked == 1
        release.set()
        until(lambda: monitor.ready)
    assert most == 1


def ours() -> tuple[int, int]:
    """Count our threads, and the tasks of every loop that are not done."""
    gc.collect()
    threads = [t for t in threading.enumerate() if t.name.startswith("resilience-mw")]
    tasks = [thing for thing in gc.get_objects() if type(thing) is asyncio.Task]
    return len(threads), len([task for task in tasks if not task.done()])


@pytest.mark.parametrize("probe", [hangs, blocks])
def test_a_thousand_rounds_of_hanging_leak_nothing(probe: Callable[[], object]):
    """Neither threads nor tasks; and the check beside it goes on."""
    beside = itertools.count()
    checks = {
        "hangs": Check(probe, interval=0.0005, timeout=0.0005, critical=False),
        "beside": Check(lambda: next(beside) >= 0, interval=0.0005),
    }
    rounds = itertools.count()
    with asking(checks) as monitor:
        until(lambda: monitor.ready and monitor.results()[0].observed_at)
        before = ours()
        last = None
        while next(rounds) < 1000:
            until(lambda: monitor.results()[0].observed_at != last)  # noqa: B023
            last = monitor.results()[0].observed_at
        after = ours()
        assert after[0] <= before[0]  # one of another test may end meanwhile
        assert after[1] <= before[1] + 2  # one that is about to end, and one that has begun
        assert monitor.ready
    assert next(beside) > 500


def test_a_slow_check_holds_up_nobody_who_reads():
    """Reading is as quick while everything hangs as while nothing is asked."""
    with asking({"db": Check(blocks, timeout=5)}) as monitor:
        began = time.perf_counter()
        for _ in range(1000):
            assert monitor.ready is False
        assert time.perf_counter() - began < 1.0


def test_old_answers_count_for_nothing(monkeypatch: pytest.MonkeyPatch):
    """A process that stood still for long does not say what was true before."""
    with asking({"db": Check(passes, interval=1)}) as monitor:
        until(lambda: monitor.ready)
    later = time.monotonic() + 3600
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert monitor.ready is False
    assert only(monitor).reason == "not asked lately"


def test_starts_are_moved_by_jitter():
    """By up to half of its share of the interval to either side."""
    began: list[float] = []
    check = Check(lambda: began.append(time.monotonic()), interval=0.02, jitter=1.0)
    with asking({"db": check}):
        until(lambda: len(began) > 30)
    pauses = [later - before for before, later in itertools.pairwise(began)]
    assert max(pauses) - min(pauses) > 0.005
    # Together, since one that was late by itself comes sooner before the next.
    assert sum(pauses) >= 0.009 * len(pauses)


def test_each_turn_is_said_once(caplog: pytest.LogCaptureFixture):
    """At a warning when it fails, without the text of the error; and when it is over."""
    caplog.set_level(logging.INFO, "resilience_mw")
    broken = threading.Event()

    def probe() -> None:
        next(asked)
        if broken.is_set():
            breaks()

    asked = itertools.count()
    with asking({"db": Check(probe, interval=0.005)}) as monitor:
        until(lambda: monitor.ready)
        broken.set()
        until(lambda: not monitor.ready)
        seen = next(asked)
        until(lambda: next(asked) > seen + 20)
        broken.clear()
        until(lambda: monitor.ready)
    lines = [record.getMessage() for record in caplog.records]
    assert lines == ["health check db fails: ValueError", "health check db passes again"]


class Tier(Check):
    """Asks a next tier that says what it is told to."""

    status: int | None = None

    def __init__(self, **options: Any) -> None:
        super().__init__(self._ask, **options)
        self.says: int | None = 200

    def _ask(self) -> None:
        self.status = self.says
        if self.status is None:
            raise CheckFailed("refused")
        if self.status != 200:
            raise CheckFailed(f"status {self.status}")


def test_the_newest_status_is_forwarded(monkeypatch: pytest.MonkeyPatch):
    """Whatever it is, before hysteresis; and nothing, where there was no answer or it is old."""
    tier = Tier(interval=0.01, fall=1000)
    with asking({"db": passes, "up": tier}, forward="up") as monitor:
        for status in (200, 500, None, 301, 200):
            tier.says = status
            until(lambda: monitor.forwarded == status)  # noqa: B023
        assert monitor.results()[1].passing
        assert monitor.results()[1].status == 200
    later = time.monotonic() + 10
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert monitor.forwarded is None
    assert Monitor({"up": tier}).forwarded is None
    assert Monitor({"up": tier}, forward="up").forwarded is None


def test_a_fault_of_ours_is_no_pass(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """It is logged, and the check counts as failing until it can be asked again."""
    check = Check(passes, interval=0.01)
    with asking({"db": check}) as monitor:
        until(lambda: monitor.ready)
        monkeypatch.delattr(check, "probe")
        until(lambda: not monitor.ready)
        assert only(monitor).reason == "not asked"
        monkeypatch.undo()
        until(lambda: monitor.ready)
    assert "health check db could not be asked" in caplog.text
