"""What makes the guard trip, and what does not."""

from __future__ import annotations

from typing import Any

import pytest

from resilience_mw.core.rollout.comparison import Comparison, RolloutGuard
from tests.rollout.guard.feeding import START, Feed


def test_more_failures_trip():
    """The verdict has both shares, both samples and the chance."""
    feed = Feed()
    assert feed.run(60, old=50) is None
    verdict = feed.run(30, old=25, new=25, new_fails=0.05)
    assert verdict is not None
    assert (verdict.reason, verdict.against) == ("errors", "old")
    assert verdict.new == pytest.approx(0.05, abs=0.01)
    assert verdict.old == 0.0
    assert verdict.new_samples >= 50
    assert verdict.old_samples > 1000
    assert 0.0 < verdict.p < 1e-7
    assert verdict.seconds <= 30.1


def test_a_verdict_falls_once():
    """What tripped is forgotten, so that a raised share gets its own chance."""
    feed = Feed()
    feed.run(60, old=50)
    assert feed.run(30, old=25, new=25, new_fails=0.5) is not None
    assert feed.comparison.verdict(feed.now) is None
    assert feed.run(60, old=25, new=25) is None


def test_a_failure_at_low_traffic_does_not_trip():
    """One, or the only one, or two in an hour of few requests."""
    feed = Feed()
    feed.run(60, old=2)
    assert feed.run(3600, old=2, new=0.05, new_fails=0.02) is None
    lonely = Feed(min_samples=1)
    lonely.run(60, old=2)
    lonely.comparison.record(True, True, 0.05, lonely.now)
    assert lonely.run(60, old=2) is None


def test_few_requests_are_collected_for_longer():
    """A page with ten requests of the new stack in a window still has a guard."""
    feed = Feed()
    feed.run(60, old=20)
    verdict = feed.run(300, old=20, new=1 / 3, new_fails=1.0)
    assert verdict is not None
    assert verdict.new_samples == 50
    assert verdict.seconds == pytest.approx(150, abs=5)


def test_nothing_is_decided_below_the_minimum():
    """However bad it looks."""
    feed = Feed()
    feed.run(60, old=50)
    for _ in range(49):
        feed.comparison.record(True, True, 9.0, feed.now)
    assert feed.comparison.verdict(feed.now) is None
    assert feed.comparison.record(True, True, 9.0, feed.now)
    assert feed.comparison.verdict(feed.now) is not None


def test_a_shared_trouble_does_not_trip():
    """A database that fails both stacks is no reason to go back."""
    for share in (0.1, 0.5, 0.9):
        feed = Feed()
        feed.run(60, old=100)
        assert feed.run(60, old=100 * (1 - share), new=100 * share) is None
        fails: dict[str, Any] = {"old_fails": 0.3, "new_fails": 0.3}
        assert feed.run(60, old=100 * (1 - share), new=100 * share, **fails) is None
        slow: dict[str, Any] = {"old_takes": 0.4, "new_takes": 0.4}
        assert feed.run(60, old=100 * (1 - share), new=100 * share, **slow) is None


def test_better_does_not_trip():
    """A new stack that is faster and fails less often is welcome."""
    feed = Feed()
    feed.run(60, old=50, old_fails=0.05)
    assert feed.run(120, old=25, new=25, old_fails=0.05, old_takes=0.2, new_takes=0.02) is None


def test_a_tolerated_excess_does_not_trip():
    """Beyond chance, but within what was allowed."""
    feed = Feed()
    feed.run(60, old=400)
    assert feed.run(120, old=200, new=200, new_fails=0.008, new_takes=0.065) is None
    strict = Feed(max_error_increase=0.0)
    strict.run(60, old=400)
    assert strict.run(120, old=200, new=200, new_fails=0.008) is not None


def test_a_slack_of_milliseconds_is_no_ratio():
    """Half a millisecond may become one and a half."""
    feed = Feed()
    feed.run(60, old=100, old_takes=0.0005)
    assert feed.run(60, old=50, new=50, old_takes=0.0005, new_takes=0.0015) is None


def test_slower_trips():
    """The verdict has both percentiles, to five percent."""
    feed = Feed()
    feed.run(60, old=100, old_takes=0.05)
    verdict = feed.run(30, old=50, new=50, new_takes=0.1)
    assert verdict is not None
    assert verdict.reason == "latency"
    assert verdict.new == pytest.approx(0.1, rel=0.05)
    assert verdict.old == pytest.approx(0.05, rel=0.05)


def test_requests_that_never_end_trip():
    """Soon after they have lasted longer than others do, not when they are cut."""
    feed = Feed()
    feed.run(60, old=100)
    began = feed.now
    verdict = feed.run(30, old=50, new=50, hangs=True)
    assert verdict is not None
    assert verdict.reason == "hangs"
    assert feed.now - began < 10
    assert "took over ten times as long" in str(verdict)
    assert verdict.new > verdict.old == 0.0


def test_long_answers_on_both_sides_do_not_trip():
    """Where every request lasts a minute, one that has not ended is nothing special."""
    feed = Feed()
    for second in range(300):
        now = START + second
        for new, begun in feed.running.items():
            begun.append(now)
            while begun[0] <= now - 60:
                feed.comparison.record(new, False, now - begun.pop(0), now)
        assert feed.comparison.verdict(now) is None


def test_missed_deadlines_trip():
    """Those that are late are told apart from those that fail."""
    feed = Feed()
    feed.run(60, old=100)
    verdict = feed.run(30, old=50, new=50, new_late=0.1)
    assert verdict is not None
    assert verdict.reason == "deadlines"
    assert str(verdict).startswith("deadlines: missed their deadline 10 % of")


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        ({"new_fails": 0.05}, "errors"),
        ({"new_takes": 0.1}, "latency"),
        ({"hangs": True}, "hangs"),
    ],
    ids=["fails", "slow", "hangs"],
)
def test_at_a_hundred_percent_the_past_counts(trouble, reason):
    """A server that is switched over whole is compared with what it did before."""
    feed = Feed()
    feed.run(60, old=50)
    verdict = feed.run(30, new=50, **trouble)
    assert verdict is not None
    assert verdict.reason == reason
    later = Feed()
    later.run(60, old=50)
    assert later.run(600, new=50) is None
    verdict = later.run(30, new=50, **trouble)
    assert verdict is not None
    assert (verdict.reason, verdict.against) == (reason, "past")


def test_the_past_is_forgotten_at_last():
    """After `baseline_age`, no figure of yesterday says what is slow today."""
    feed = Feed(baseline_age=120)
    feed.run(60, old=50)
    assert feed.run(180, new=50) is None
    assert feed.run(120, new=50, new_takes=0.1) is None
    verdict = feed.run(30, new=50, new_fails=0.2)
    assert verdict is not None
    assert (verdict.reason, verdict.against, verdict.old) == ("errors", "limit", 0.02)


def test_without_any_past_there_is_a_limit():
    """A process that never had the old stack's traffic knows only what no page should do."""
    assert Feed().run(300, new=50, new_fails=0.01) is None
    assert Feed().run(300, new=50, new_takes=5.0) is None
    verdict = Feed().run(60, new=50, new_fails=0.06)
    assert verdict is not None
    assert "the limit of 2 %, in" in str(verdict)


def test_an_old_stack_that_fails_more_than_the_limit_is_no_reason():
    """What little is known of it counts, too."""
    assert Feed().run(300, old=1, new=49, old_fails=0.06, new_fails=0.06) is None


def test_an_idle_night_is_no_trouble():
    """Whatever the pause, the next request opens a window of its own."""
    feed = Feed()
    feed.run(60, old=50)
    feed.now += 40_000
    assert feed.run(60, old=25, new=25) is None
    assert feed.run(30, old=25, new=25, new_fails=1.0) is not None


def test_what_hung_before_a_restart_does_not_count():
    """`restart` gives the new stack another chance, and late ends of the old ones are no harm."""
    feed = Feed()
    feed.run(60, old=50)
    feed.run(3, old=25, new=25, hangs=True)
    feed.comparison.restart()
    for _ in range(75):
        feed.comparison.record(True, False, 10.0, feed.now + 7.0)
    feed.comparison.restart()
    feed.now += 7.0
    assert feed.run(120, old=25, new=25) is None


def test_a_look_is_rare():
    """Only `record` and `verdict` of the next slot, or of many more requests, have work to do."""
    comparison = Comparison(RolloutGuard(window=20.0), START)
    assert not comparison.record(False, False, 0.1, START + 0.1)
    assert not any(comparison.record(True, False, 0.1, START + 0.2) for _ in range(49))
    assert comparison.record(True, False, 0.1, START + 0.3)
    assert comparison.verdict(START + 0.3) is None
    assert not comparison.record(False, False, 0.1, START + 0.4)
    assert comparison.record(False, False, 0.1, START + 1.5)


def test_memory_is_bounded():
    """Latencies are counted, not kept; slots are dropped."""
    feed = Feed(window=2.0)
    for _ in range(10_000):
        feed.comparison.record(False, False, 0.1, feed.now)
    assert len(feed.comparison._slot.old.fresh) < 5_000
    feed.run(60, old=50, new=50)
    assert len(feed.comparison._slots) <= 21
    feed.run(60, old=50)
    assert len(feed.comparison._slots) <= 201


def test_refusals_are_no_samples():
    """A stack that refuses everybody, after whatever wait, is not worse for it."""
    feed = Feed()
    feed.run(60, old=50)
    for second in range(300):
        feed.running[True].append(feed.now + second)
        if second >= 5:
            feed.running[True].pop(0)
        assert feed.comparison.verdict(feed.now + second) is None


def test_a_few_that_hang_are_seen_before_they_are_many():
    """One in twenty lasts two seconds: its 95th percentile is as ever."""
    feed = Feed()
    feed.run(60, old=50)
    verdict = None
    for _ in range(28):
        verdict = verdict or feed.run(0.9, old=25, new=25)
        verdict = verdict or feed.run(0.1, old=25, new=15, new_takes=2.0)
    assert verdict is not None
    assert verdict.reason == "hangs"


@pytest.mark.parametrize("least", [1, 7, 50])
def test_what_has_faded_is_no_whole_number(least):
    """An old stack that always fails, hangs and is slow, long ago, breaks no test."""
    feed = Feed(min_samples=least)
    for old in (3, 50, 7, 11):
        feed.run(31.7, old=old, old_fails=1.0, old_takes=9.0)
        assert feed.run(70, new=2, new_fails=1.0, new_takes=9.0) is None
        assert feed.run(20, old=1, new=20, old_fails=1.0, new_fails=1.0) is None
