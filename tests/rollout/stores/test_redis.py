"""A real Redis in all its troubles: the process goes on, and the log says so."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import redis

from resilience_mw.core.rollout import Share
from resilience_mw.rollout.follower import Follower
from resilience_mw.rollout.stores import StoreError, open_store
from tests.rollout.redis_server import RedisServer
from tests.rollout.stores.following import until


@pytest.fixture
def own() -> Iterator[RedisServer]:
    """A server that the test may do anything to."""
    with RedisServer() as server:
        yield server


class Requests:
    """Two threads of requests, each of which asks for its share; a context manager."""

    def __init__(self, follower: Follower) -> None:
        self.answers: list[float] = []
        self.slowest = 0.0
        self._follower = follower
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._ask) for _ in range(2)]

    def _ask(self) -> None:
        while not self._stop.wait(0.001):
            begun = time.perf_counter()
            self.answers.append(self._follower.shares["favourites"].percent)
            self.slowest = max(self.slowest, time.perf_counter() - begun)

    def __enter__(self) -> Requests:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(10)


def test_killed_and_restarted_under_load(own: RedisServer, caplog: pytest.LogCaptureFixture):
    """No request waits or sees another share; the restarted server, empty, learns it again."""
    caplog.set_level(logging.INFO, "resilience_mw")
    open_store(own.url).change("favourites", 0, held=True, who="guard")
    follower = Follower(open_store(own.url), lambda shares: None, rules={"favourites": Share(2)})
    follower.start(wait=20)
    with Requests(follower) as requests:
        own.kill()
        until(lambda: not follower.connected)
        time.sleep(1.0)
        own.start()
        until(lambda: follower.connected)
    follower.close()
    assert len(requests.answers) > 100
    assert set(requests.answers) == {0.0}
    assert open_store(own.url).load() == {"favourites": Share(0, held=True)}
    assert open_store(own.url).history()[0].why == "the store had lost it"
    start, away, back = [record.message for record in caplog.records]
    assert start.endswith(": favourites 0 %, held (2 % in the code)")
    assert away.startswith(f"rollout store is away, the last known shares stand: {own.url} cannot")
    assert back.startswith(f"rollout store {own.url} is back after ")


def test_slow(own: RedisServer, caplog: pytest.LogCaptureFixture):
    """A server that answers nobody for seconds is away after its timeout; requests go on."""
    open_store(own.url).change("favourites", 50, who="anna")
    follower = Follower(open_store(own.url), lambda shares: None)
    follower.start(wait=20)
    with own.admin() as admin, Requests(follower) as requests:
        admin.client_pause(3000)
        until(lambda: not follower.connected)
        begun = time.perf_counter()
        follower.submit("favourites", why="tripped")
        submitted = time.perf_counter() - begun
        # Here at once, in the store once it answers again.
        until(lambda: follower.shares == {"favourites": Share(0, held=True)})
        assert not follower.connected
        until(lambda: follower.connected)
    follower.close()
    assert set(requests.answers) == {0.0, 50.0}
    # Far below the pause, whatever else this machine does.
    assert max(requests.slowest, submitted) < 1.0
    assert open_store(own.url).load() == {"favourites": Share(0, held=True)}
    assert caplog.records[0].message == (
        f"rollout store is away, the last known shares stand: {own.url} cannot be used: timeout"
    )


def test_out_of_memory_the_way_back_is_open_and_the_way_up_is_not(own: RedisServer):
    """Reading and lowering work on a full server, with their record; raising says why not."""
    store = open_store(own.url)
    store.change("favourites", 50, who="anna")
    store.change("cart", 50, who="anna")
    with own.admin() as admin:
        admin.config_set("maxmemory-policy", "noeviction")
        admin.config_set("maxmemory", 1)
        with pytest.raises(redis.exceptions.OutOfMemoryError):
            admin.set("anything", "x")
        with pytest.raises(StoreError, match=r"cannot be used: out of memory$"):
            store.change("favourites", 60, who="anna")
        with pytest.raises(StoreError, match=r"cannot be used: out of memory$"):
            store.change("new", 1, who="anna")
        assert store.load() == {"favourites": Share(50), "cart": Share(50)}
        store.change("favourites", 0, who="anna", why="back")
        store.change("cart", 0, held=True, who="guard", why="tripped")
        assert store.load() == {"favourites": Share(0), "cart": Share(0, held=True)}
        assert [change.why for change in store.history(2)] == ["tripped", "back"]


def test_rules_that_a_full_server_cannot_take_in(
    own: RedisServer, caplog: pytest.LogCaptureFixture
):
    """It is followed all the same; one line says what is missing."""
    with own.admin() as admin:
        admin.config_set("maxmemory", 1)
        follower = Follower(open_store(own.url), lambda shares: None, rules={"cart": Share(2)})
        for _ in range(3):
            follower.look()
        assert follower.connected
        (record,) = caplog.records
        assert record.message == (
            f"rollout rules not in the store: {own.url} cannot be used: out of memory"
        )


@pytest.mark.parametrize("user", ["", "anna"])
def test_wrong_password(user: str, caplog: pytest.LogCaptureFixture):
    """Both processes' errors say so in few words, and neither shows a password."""
    with RedisServer("--requirepass", "right-secret") as server:
        url = server.url.replace("redis://", f"redis://{user}:wrong-secret@")
        with pytest.raises(StoreError, match=r"cannot be used: wrong user or password$") as caught:
            open_store(url).load()
        with pytest.raises(StoreError, match=r"Authentication required|wrong user or password"):
            open_store(server.url).change("favourites", 1, who="anna")
        follower = Follower(open_store(url), lambda shares: None, rules={"favourites": Share(2)})
        for _ in range(3):
            follower.look()
        assert not follower.connected
        (record,) = caplog.records
        assert record.message.endswith("no share is known yet: " + str(caught.value))
        assert "secret" not in record.message
        right = open_store(server.url.replace("redis://", "redis://:right-secret@"))
        assert right.load() == {}


def test_users_of_an_access_list(own: RedisServer):
    """What the page names is enough; who may only read is told so in words."""
    read = ["+hgetall", "+hget", "+lrange"]
    with own.admin() as admin:
        for user, commands in (
            ("reader", read),
            ("writer", [*read, "+eval", "+hset", "+lpush", "+ltrim"]),
        ):
            keys = ["{resilience_mw:rollout}:*"]
            admin.acl_setuser(user, enabled=True, passwords=["+pw"], keys=keys, commands=commands)
    reader, writer = (
        open_store(own.url.replace("redis://", f"redis://{user}:pw@"))
        for user in ("reader", "writer")
    )
    change = writer.change("favourites", 2, who="anna")
    assert reader.load() == {"favourites": Share(2)}
    assert reader.history() == (change,)
    with pytest.raises(StoreError, match=r"cannot be used: this user may not$"):
        reader.change("favourites", 1, who="anna")


def test_a_replica_which_only_reads(own: RedisServer):
    """After a failover the old primary refuses changes, and can still be read."""
    store = open_store(own.url)
    store.change("favourites", 2, who="anna")
    with own.admin() as admin, RedisServer() as replica, replica.admin() as other:
        admin.config_set("repl-diskless-sync-delay", 0)
        other.replicaof("127.0.0.1", own.port)
        behind = open_store(replica.url)
        until(lambda: _loaded(behind) == {"favourites": Share(2)})
        with pytest.raises(StoreError, match=r"a replica, which only reads$"):
            behind.change("favourites", 0, who="anna")


def _loaded(store) -> object:
    try:
        return store.load()
    except StoreError:
        return None


def test_nobody_listens(own: RedisServer):
    """The error says refused, and names the server."""
    own.kill()
    with pytest.raises(StoreError, match=f"^{own.url} cannot be used: refused$"):
        open_store(own.url).load()


@pytest.mark.parametrize("text", ["many", "101", "-1", "0.001", "nan", ""])
def test_a_share_that_is_none(redis_server: RedisServer, text: str):
    """Whatever somebody wrote by hand: a line that names the rule, and no share from it."""
    prefix = str(uuid4())
    store = open_store(f"{redis_server.url}?prefix={prefix}")
    with redis_server.admin() as admin:
        admin.hset(f"{{{prefix}}}:shares", "favourites", text)
        with pytest.raises(StoreError, match="has no share for rule favourites: got "):
            store.load()
        admin.delete(f"{{{prefix}}}:shares")
        admin.set(f"{{{prefix}}}:shares", "no hash")
        with pytest.raises(StoreError, match=r"cannot be used: WRONGTYPE"):
            store.load()


def test_the_history_is_bounded(redis_server: RedisServer):
    """It keeps the newest thousand, and lines that are no records do no harm."""
    prefix = str(uuid4())
    store = open_store(f"{redis_server.url}?prefix={prefix}")
    store.change("favourites", 1, who="anna")
    key = f"{{{prefix}}}:history"
    with redis_server.admin() as admin:
        admin.rpush(key, *["no json", "[]"] * 1000)
        store.change("favourites", 2, who="ben")
        assert admin.llen(key) == 1000
    assert [change.who for change in store.history(1000)] == ["ben", "anna"]
    assert store.history(0) == ()


def test_every_follower_sees_a_change_soon(redis_server: RedisServer):
    """Eight servers' followers, one command."""
    url = f"{redis_server.url}?prefix={uuid4()}"
    followers = [Follower(open_store(url), lambda shares: None) for _ in range(8)]
    for follower in followers:
        follower.start(wait=20)
    open_store(url).change("favourites", 100, who="anna")
    begun = time.monotonic()
    for follower in followers:
        until(lambda f=follower: f.shares == {"favourites": Share(100)})  # type: ignore[misc]
    # A quarter of a second by itself; the machine may be busy.
    assert time.monotonic() - begun < 5
    for follower in followers:
        follower.close()


def test_over_a_unix_socket(tmp_path: Path):
    """The same over a path; a forked child's connections are its own."""
    path = tmp_path / "redis.sock"
    with RedisServer("--unixsocket", str(path)):
        store = open_store(f"unix://{path}?db=0")
        store.change("favourites", 2, who="anna")
        assert store.load() == {"favourites": Share(2)}
        store.after_fork()
        assert store.load() == {"favourites": Share(2)}
        store.close()
        assert store.load() == {"favourites": Share(2)}
        store.close()
