"""What is said of a Redis that is no good, in words that fit the trouble."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import uuid4

import pytest

from resilience_mw.core.rollout import Share
from resilience_mw.rollout.follower import Follower
from resilience_mw.rollout.stores import StoreError, Unanswered, open_store
from tests.rollout.redis_server import RedisServer

OLD = (
    b"-ERR Error running script (call to f_0): @user_script:4: @user_script: 4: "
    b"-OOM command not allowed when used memory > 'maxmemory'.\r\n"
)
"""What servers before version 7 say of a script's first write."""


@contextmanager
def answering(answer: Callable[[bytes], bytes | None]) -> Iterator[str]:
    """Run a server that gives an answer of the test's to each command; ``None`` = it hangs up."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            while received := self.request.recv(65536):
                said = answer(received)
                if said is None:
                    return
                self.request.sendall(said)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"redis://127.0.0.1:{server.server_address[1]}/0"
        finally:
            server.shutdown()
            thread.join(10)


def test_a_server_that_hangs_up():
    """Nobody knows what became of a change: that is another error than a refused one."""
    with (
        answering(lambda command: None) as url,
        pytest.raises(Unanswered, match=r"cannot be used: connection lost$"),
    ):
        open_store(url).change("favourites", 1, who="anna")


def test_a_full_server_before_version_7():
    """The same words, although the server wraps them in others."""

    def answer(command: bytes) -> bytes:
        if b"CLIENT" in command:
            return b"+OK\r\n" * command.count(b"CLIENT")
        return OLD if b"EVAL" in command else b"$-1\r\n"

    with answering(answer) as url, pytest.raises(StoreError, match=r"used: out of memory$"):
        open_store(url).change("favourites", 1, who="anna")


def test_a_server_that_still_loads():
    """After a restart with much data it answers, but not yet with what it has."""

    def answer(command: bytes) -> bytes:
        if b"CLIENT" in command:
            return b"+OK\r\n" * command.count(b"CLIENT")
        return b"-LOADING Redis is loading the dataset in memory\r\n"

    with (
        answering(answer) as url,
        pytest.raises(StoreError, match=r"still loading its data$"),
    ):
        open_store(url).load()


def test_where_there_is_no_server():
    """The system's own words, which name no secret."""
    with pytest.raises(StoreError, match=r"^unix:/no/redis\.sock cannot be used: no such file"):
        open_store("unix://:secret@/no/redis.sock").load()
    with pytest.raises(StoreError, match=r"^redis://nowhere\.invalid:6379/0 cannot") as told:
        open_store("redis://:secret@nowhere.invalid").load()
    assert "secret" not in str(told.value)


def test_others_who_are_always_faster(redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch):
    """It begins again each time, and gives up at last; what the others wrote stands."""
    url = f"{redis_server.url}?prefix={uuid4()}"
    store = open_store(url)
    monkeypatch.setattr("resilience_mw.rollout.stores.redis.TRIES", 3)
    seen: list[Share | None] = []

    def decide(before: Share | None) -> Share:
        seen.append(before)
        open_store(url).change("favourites", len(seen), who="faster")
        return Share(100.0)

    with pytest.raises(StoreError, match=r"cannot be changed: 3 others were faster$"):
        store.transact("favourites", decide, "anna", "")
    assert seen == [None, Share(1), Share(2)]
    assert store.load() == {"favourites": Share(3)}


def test_one_share_that_is_none_leaves_the_others_a_way_back():
    """It keeps its last known share, whatever else a person sets is followed."""
    with RedisServer() as server, server.admin() as admin:
        store = open_store(server.url)
        for rule in ("favourites", "cart"):
            store.change(rule, 50, who="anna")
        follower = Follower(store, lambda shares: None)
        follower.look()
        admin.hset("{resilience_mw:rollout}:shares", "cart", "half")
        store.change("favourites", 0, who="anna")
        with pytest.raises(StoreError, match=r"no share for rule cart: got 'half'$"):
            store.load()
        follower.look()
        assert follower.shares == {"favourites": Share(0), "cart": Share(50)}
        assert not follower.connected
        store.close()
