"""What a guard decides in one process: in force there at once, and everywhere once it is stored."""

from __future__ import annotations

import threading
from uuid import uuid4

import pytest

from resilience_mw.core.rollout import Share
from resilience_mw.rollout.follower import Follower
from resilience_mw.rollout.stores import StoreError, open_store
from tests.rollout.redis_server import RedisServer
from tests.rollout.stores.following import Applied, Fragile, until


def test_what_the_guard_decides_holds_here_before_the_store_has_it(
    follow, store: Fragile, applied: Applied, caplog: pytest.LogCaptureFixture
):
    """The store is away: this process is at 0 all the same, and stores it once it can."""
    store.change("favourites", 50, who="anna")
    follower = follow()
    follower.look()
    store.cut = StoreError("fragile is away")
    follower.submit("favourites", why="errors 5.1 %")
    for _ in range(5):
        follower.look()
    assert applied.states[-1] == {"favourites": Share(0, held=True)}
    assert store.real.load() == {"favourites": Share(50)}
    messages = [record.message for record in caplog.records]
    assert (
        messages.count("rollout rule favourites: 0 %, held in this process alone: fragile is away")
        == 1
    )
    assert len(messages) == 2
    store.cut = None
    follower.look()
    assert store.load() == {"favourites": Share(0, held=True)}
    assert store.history()[0].who == "guard"
    assert store.history()[0].why == "errors 5.1 %"
    store.clear_hold("favourites", who="anna")
    store.change("favourites", 10, who="anna")
    follower.look()
    assert applied.states[1:] == [{"favourites": Share(0, held=True)}, {"favourites": Share(10)}]


def test_a_submitted_share_that_a_hold_forbids_is_dropped(follow, store: Fragile):
    """Somebody's hold is stronger than what a process had in its hands."""
    store.change("favourites", 0, held=True, who="guard")
    follower = follow()
    follower.submit("favourites", 10, held=False, who="test")
    follower.look()
    assert follower.shares == {"favourites": Share(0, held=True)}


def test_what_is_submitted_while_the_store_is_asked_counts(
    follow, store: Fragile, monkeypatch: pytest.MonkeyPatch
):
    """The newer decision is not dropped with the older one that was just stored."""
    follower = follow()
    real = store.transact

    def slow(*arguments):
        monkeypatch.setattr(store, "transact", real)
        follower.submit("favourites", why="newer")
        return real(*arguments)

    monkeypatch.setattr(store, "transact", slow)
    follower.submit("favourites", 5, held=False, who="test")
    follower.look()
    assert follower.shares == {"favourites": Share(0, held=True)}
    follower.look()
    assert store.load() == {"favourites": Share(0, held=True)}
    assert [change.why for change in store.history()] == ["newer", ""]


def test_submitting_wakes_the_thread(follow, store: Fragile):
    """The store has it long before the next look is due."""
    store.change("favourites", 50, who="anna")
    store.interval = 3600
    follower = follow()
    follower.start(wait=20)
    follower.submit("favourites", why="tripped")
    until(lambda: store.load() == {"favourites": Share(0, held=True)})


def test_closing_stores_what_is_pending(follow, store: Fragile):
    """A server that stops hands its last word on."""
    follower = follow()
    follower.start(wait=20)
    store.interval = 3600
    follower.submit("favourites")
    follower.close(timeout=20)
    assert store.load() == {"favourites": Share(0, held=True)}
    follower.start()
    assert threads(follower) == 0


def threads(follower: Follower) -> int:
    thread = follower._thread
    return int(thread is not None and thread.is_alive())


def test_many_guards_that_trip_at_once_are_one_record(redis_server: RedisServer):
    """Sixteen processes see the same failure in the same second: held once, with one's figures."""
    url = f"{redis_server.url}?prefix={uuid4()}"
    open_store(url).change("favourites", 50, who="anna")
    followers = [Follower(open_store(url), lambda shares: None) for _ in range(16)]
    together = threading.Barrier(16)

    def trip(number: int) -> None:
        together.wait(20)
        followers[number].submit("favourites", why=f"figures of {number}")
        followers[number].look()

    threads = [threading.Thread(target=trip, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    held = {"favourites": Share(0, held=True)}
    assert [follower.shares for follower in followers] == [held] * 16
    assert [change.who for change in open_store(url).history()] == ["guard", "anna"]
