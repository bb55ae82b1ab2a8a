"""Requests through the whole middleware, on a Redis that is killed, slow, full or closed to it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from resilience_mw import RolloutRule
from resilience_mw.asgi import RolloutMiddleware
from resilience_mw.rollout.stores import StoreError, open_store
from tests.rollout.redis_server import RedisServer
from tests.rollout.stores.apps import asgi_stack

RULES = [RolloutRule("favourites", path="/item_collect.htm", percent=7, by="request")]
SCOPE = {
    "type": "http",
    "method": "GET",
    "path": "/item_collect.htm",
    "raw_path": b"/item_collect.htm",
    "root_path": "",
    "query_string": b"",
    "headers": [],
    "client": ("127.0.0.1", 1),
    "server": ("127.0.0.1", 80),
}


class Load:
    """One request after another in an event loop of its own, until it is left."""

    def __init__(self, url: str) -> None:
        self.app = RolloutMiddleware(
            asgi_stack("old"), new=asgi_stack("new"), rules=RULES, store=url
        )
        self.answers: list[tuple[float, str]] = []
        self.slowest = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._ask()))

    async def _ask(self) -> None:
        while not self._stop.is_set():
            sent: list[Any] = []

            async def receive() -> Any:
                return {"type": "http.request"}

            async def send(message: Any, sent: list[Any] = sent) -> None:
                sent.append(message)

            begun = time.perf_counter()
            await self.app(dict(SCOPE), receive, send)
            self.slowest = max(self.slowest, time.perf_counter() - begun)
            assert sent[0]["status"] == 200
            self.answers.append((time.monotonic(), sent[1]["body"].decode().split()[0]))
            await asyncio.sleep(0.002)

    def stacks(self, since: float = 0.0) -> set[str]:
        return {stack for at, stack in list(self.answers) if at >= since}

    def until(self, stack: str) -> None:
        """Wait until requests are answered by a stack."""
        end = time.monotonic() + 20
        while self.answers[-1:] == [] or self.answers[-1][1] != stack:
            assert time.monotonic() < end, "it did not happen"
            assert self._thread.is_alive()
            time.sleep(0.005)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join(20)
        self.app.close()


@pytest.fixture
def own() -> Iterator[RedisServer]:
    """A server that the test may do anything to."""
    with RedisServer() as server:
        yield server


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.name == "resilience_mw.rollout"]


def until_said(caplog: pytest.LogCaptureFixture, words: str) -> None:
    end = time.monotonic() + 20
    while not any(words in message for message in messages(caplog)):
        assert time.monotonic() < end, messages(caplog)
        time.sleep(0.005)


def kill(server: RedisServer) -> None:
    server.kill()


def pause(server: RedisServer) -> None:
    with server.admin() as admin:
        admin.client_pause(2500)


@pytest.mark.parametrize(
    ("harm", "mend"), [(kill, RedisServer.start), (pause, None)], ids=["killed", "slow"]
)
def test_no_request_fails_or_waits(
    own: RedisServer,
    harm: Callable[[RedisServer], None],
    mend: Callable[[RedisServer], object] | None,
    caplog: pytest.LogCaptureFixture,
):
    """The last known share serves every request meanwhile; then the store counts again."""
    caplog.set_level("INFO", "resilience_mw")
    open_store(own.url).change("favourites", 100, who="anna")
    with Load(own.url) as load:
        load.until("new")
        begun = time.monotonic()
        harm(own)
        until_said(caplog, "rollout store is away, the last known shares stand: ")
        time.sleep(0.5)
        if mend is not None:
            mend(own)
        until_said(caplog, "is back after")
        assert load.stacks(begun) == {"new"}
        open_store(own.url).change("favourites", 0, who="anna")
        load.until("old")
    assert load.slowest < 1.0
    assert len([message for message in messages(caplog) if "store" in message]) == 2


def test_full(own: RedisServer, caplog: pytest.LogCaptureFixture):
    """Nothing can be raised on a full server, and everything taken back: requests see that."""
    open_store(own.url).change("favourites", 100, who="anna")
    with Load(own.url) as load, own.admin() as admin:
        load.until("new")
        admin.config_set("maxmemory", 1)
        with pytest.raises(StoreError, match="out of memory"):
            open_store(own.url).change("other", 1, who="anna")
        open_store(own.url).change("favourites", 0, who="anna")
        load.until("old")
    assert load.slowest < 1.0


def test_wrong_password(own: RedisServer, caplog: pytest.LogCaptureFixture):
    """A server that never gets in serves the old stack, whatever the code says, and says why."""
    with own.admin() as admin:
        admin.config_set("requirepass", "right-secret")
    url = own.url.replace("redis://", "redis://:wrong-secret@")
    with Load(url) as load:
        load.until("old")
        until_said(caplog, "no share is known yet: ")
    assert load.stacks() == {"old"}
    (told,) = messages(caplog)
    assert told.endswith(f"{own.url} cannot be used: wrong user or password")
