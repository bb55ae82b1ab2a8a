"""The follower: every process at the store's shares, and none disturbed by its troubles."""

from __future__ import annotations

import gc
import logging
import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from resilience_mw.core.rollout import Share
from resilience_mw.rollout.follower import Follower
from resilience_mw.rollout.stores import StoreError, open_store
from tests.rollout.stores.following import Applied, Fragile, until


def test_the_first_look_is_applied_and_then_each_change(follow, store: Fragile, applied: Applied):
    """The process starts with the store's shares, and follows a change without being told twice."""
    store.change("favourites", 2, who="anna")
    follower = follow()
    follower.start(wait=20)
    assert applied.states == [{"favourites": Share(2)}]
    assert follower.shares == {"favourites": Share(2)}
    assert follower.connected
    store.change("favourites", 50, who="anna")
    until(lambda: len(applied.states) == 2)
    assert applied.states[-1] == {"favourites": Share(50)}


def test_others_rules_in_the_store_are_no_events(
    store: Fragile, applied: Applied, caplog: pytest.LogCaptureFixture
):
    """Apps that share a store need not hear of each other, but of what may be a mistyped name."""
    store.change("theirs", 1, who="anna")
    follower = Follower(store, applied, rules={"ours": Share(1)})
    follower.look()
    with caplog.at_level(logging.INFO, "resilience_mw"):
        store.change("theirs", 5, who="anna")
        store.change("ours", 2, who="anna")
        store.change("our", 3, who="anna")
        follower.look()
    assert caplog.messages == [
        "rollout rule ours: 2 %, was 1 %",
        "rollout: 3 % for 'our', but no rule of this app is called so",
    ]


def test_an_edit_by_hand_is_followed_within_a_second(tmp_path: Path, applied: Applied):
    """A real file store, saved as an editor does: by another file that takes its place."""
    path = tmp_path / "rollout.toml"
    path.write_text("favourites = 2\n")
    follower = Follower(open_store(f"file:{path}"), applied)
    follower.start(wait=20)
    (tmp_path / "new").write_text("favourites = 100\n")
    os.replace(tmp_path / "new", path)
    begun = time.monotonic()
    until(lambda: follower.shares == {"favourites": Share(100)})
    # A quarter of a second by itself; the machine may be busy.
    assert time.monotonic() - begun < 5
    follower.close()


def test_the_last_known_shares_stand_and_two_lines_say_so(
    follow, store: Fragile, applied: Applied, caplog: pytest.LogCaptureFixture
):
    """However often it looks in vain: one line when the store goes, one when it is back."""
    store.change("favourites", 50, who="anna")
    follower = follow()
    follower.look()
    with caplog.at_level(logging.INFO, "resilience_mw"):
        store.cut = StoreError("fragile cannot be read: timeout")
        for _ in range(20):
            follower.look()
        assert follower.shares == {"favourites": Share(50)}
        assert not follower.connected
        store.cut = None
        store.change("favourites", 0, who="anna")
        for _ in range(20):
            follower.look()
    assert applied.states == [{"favourites": Share(50)}, {"favourites": Share(0)}]
    away, back, changed = [record.message for record in caplog.records]
    assert away == (
        "rollout store is away, the last known shares stand: fragile cannot be read: timeout"
    )
    assert back.startswith("rollout store fragile is back after ")
    assert changed == "rollout rule favourites: 0 %, was 50 %"
    assert follower.connected


def test_a_store_that_is_away_from_the_start(
    follow, store: Fragile, applied: Applied, caplog: pytest.LogCaptureFixture
):
    """Nothing is applied, and the line says that no share is known."""
    store.cut = ConnectionError("redis://user:secret@host")
    follower = follow(rules={"favourites": Share(2)})
    follower.start(wait=20)
    assert applied.states == []
    (record,) = caplog.records
    assert record.message == (
        "rollout store is away, no share is known yet: fragile: ConnectionError"
    )
    store.cut = None
    until(lambda: applied.states)
    assert applied.states == [{"favourites": Share(2)}]


def test_the_rules_of_the_code_are_taken_in(follow, store: Fragile, applied: Applied):
    """The store learns a rule that it does not have, and what it has wins over the code."""
    store.change("cart", 30, who="anna")
    follow(rules={"favourites": Share(2), "cart": Share(1)}).look()
    assert applied.states == [{"favourites": Share(2), "cart": Share(30)}]
    assert store.load() == applied.states[0]
    assert store.history()[0].why == "as in the code"


def test_a_store_that_comes_back_empty_gets_the_last_known_shares(
    follow, store: Fragile, applied: Applied
):
    """A hold must not be forgotten because a server without a disk was restarted."""
    follower = follow(rules={"favourites": Share(2)})
    follower.look()
    store.change("favourites", 0, held=True, who="guard")
    follower.look()
    store.real.path.write_text("")  # type: ignore[attr-defined]
    follower.look()
    assert store.load() == {"favourites": Share(0, held=True)}
    assert applied.states == [{"favourites": Share(2)}, {"favourites": Share(0, held=True)}]


def test_rules_that_cannot_be_taken_in_are_one_line(
    follow,
    store: Fragile,
    applied: Applied,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
):
    """A store that may only be read is followed all the same, and asked again now and then."""
    tries = []

    def refuse(*arguments: object) -> None:
        tries.append(arguments)
        raise StoreError("read only")

    store.real.change("cart", 30, who="anna")
    follower = follow(rules={"favourites": Share(2)})
    with monkeypatch.context() as patch:
        patch.setattr(store, "transact", refuse)
        for _ in range(10):
            follower.look()
        assert len(tries) == 1
        patch.setattr("resilience_mw.rollout.follower.ANNOUNCE_AGAIN", 0.0)
        follower._announce_at = 0.001
        for _ in range(3):
            follower.look()
        assert len(tries) == 4
    assert applied.states == [{"cart": Share(30)}]
    assert [r.message for r in caplog.records] == ["rollout rules not in the store: read only"]
    follower.look()
    assert applied.states[1:] == [{"cart": Share(30), "favourites": Share(2)}]
    assert len(caplog.records) == 1


def test_an_error_of_the_app_does_not_end_the_thread(
    store: Fragile, caplog: pytest.LogCaptureFixture
):
    """Applying may raise: the log has it, and the next state is handed over all the same."""
    states = []

    def apply(shares: Mapping[str, Share]) -> None:
        states.append(dict(shares))
        raise ZeroDivisionError

    follower = Follower(store, apply)
    follower.start(wait=20)
    store.change("favourites", 2, who="anna")
    until(lambda: states[-1] == {"favourites": Share(2)})
    follower.close()
    assert {r.message for r in caplog.records} == {"rollout shares could not be applied"}


def test_a_dropped_follower_ends_its_thread(store: Fragile, applied: Applied):
    """An app that is thrown away leaves no thread behind."""
    follower = Follower(store, applied)
    follower.start(wait=20)
    thread = follower._thread
    assert thread is not None
    del follower
    gc.collect()
    thread.join(20)
    assert not thread.is_alive()


def test_starting_twice_is_starting_once(follow):
    """One thread, whoever calls and however often."""
    follower = follow()
    before = threading.active_count()
    for _ in range(5):
        follower.start()
    assert threading.active_count() - before == 1


def test_many_followers_of_one_file_agree(tmp_path: Path):
    """Twenty processes' worth of followers, two people: all end where the history ends."""
    path = tmp_path / "rollout.json"
    seen = [Applied() for _ in range(20)]
    followers = [Follower(open_store(f"file:{path}"), each) for each in seen]
    for follower in followers:
        follower.start()

    def person(who: str) -> None:
        for percent in range(0, 100, 10):
            open_store(f"file:{path}").change("favourites", percent, who=who)

    people = [threading.Thread(target=person, args=(who,)) for who in ("anna", "ben")]
    for each in people:
        each.start()
    for each in people:
        each.join(30)
    history = open_store(f"file:{path}").history(1000)
    assert len(history) == 20
    until(lambda: all(f.shares == {"favourites": history[0].after} for f in followers))
    for follower in followers:
        follower.close()
