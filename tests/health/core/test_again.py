"""A monitor that ends and begins again, that shares its checks, or has no room to begin."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import time
from typing import Any

import pytest

from resilience_mw import Config, Health, protect
from resilience_mw.core.shedding import Shedding
from resilience_mw.health import Check, Monitor, UpstreamCheck
from resilience_mw.health.asking import Asking
from tests.health.checks.peer import Peer, status
from tests.health.core.waiting import asking, only, until


def test_what_hangs_is_not_asked_again_in_the_next_life():
    """However often an app is started and stopped: one thread hangs, not one each time."""
    release = threading.Event()
    asked: list[None] = []

    def probe() -> None:
        asked.append(None)
        release.wait(30)

    monitor = Monitor({"db": Check(probe, interval=0.01, timeout=0.01)})
    for _ in range(5):
        monitor.start()
        until(lambda: only(monitor).reason == "timeout")
        monitor.close()
    assert len(asked) == 1
    monitor.start()
    release.set()
    until(lambda: monitor.ready)
    monitor.close()


def test_what_hung_in_our_own_loop_is_asked_again():
    """It ended with that loop."""
    with Peer(lambda connection, _: time.sleep(0.3)) as peer:
        monitor = Monitor({"up": UpstreamCheck(peer.url(), timeout=0.1, interval=0.01)})
        monitor.start()
        until(lambda: only(monitor).reason == "timeout")
        monitor.close()
        peer.behaviour = status(200)
        monitor.start()
        until(lambda: monitor.ready)
        monitor.close()


def test_a_life_that_is_over_leaves_nothing():
    """A test client may start an app a thousand times."""
    monitor = Monitor({"db": Check(lambda: True, interval=60)})

    def lives() -> int:
        gc.collect()
        return sum(type(thing) is Asking for thing in gc.get_objects())

    monitor.start()
    monitor.close()
    before = lives()
    for _ in range(20):
        monitor.start()
        monitor.close()
    assert lives() <= before


def test_shedding_of_an_earlier_life_is_forgotten():
    """It is counted anew, and seen again when there is still too much."""
    counts = [0, 0]
    monitor = Monitor({}, shedding=Shedding(0.5, 0.1))
    monitor.watch(lambda: (counts[0], counts[1]))
    for _ in range(2):
        monitor.start()
        until(lambda: monitor.results())
        for _ in range(1000):
            counts[1] += 100
            time.sleep(0.005)
            if not monitor.ready:
                break
        assert not monitor.ready
        monitor.close()


def test_two_apps_may_share_a_check():
    """Neither sees that there is no answer while the other asks."""
    with Peer(status(200)) as peer:
        check = UpstreamCheck(peer.url(), interval=0.002, timeout=5)
        with asking({"up": check}, forward="up") as one, asking({"up": check}, forward="up") as two:
            until(lambda: one.forwarded == 200 and two.forwarded == 200)
            seen = set()
            until_ = time.monotonic() + 1.0
            while time.monotonic() < until_:
                seen |= {one.forwarded, two.forwarded}
        assert seen == {200}


def test_no_room_for_a_thread_is_no_failed_probe(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """Probes answer "not ready", liveness 200; the next one tries again, and it is said once."""

    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monitor = Monitor({"db": Check(lambda: True, interval=0.01)})
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        for _ in range(3):
            monitor.touch()
        assert not monitor.ready
    assert caplog.text.count("cannot be asked for now") == 1
    monitor.touch()
    until(lambda: monitor.ready)
    monitor.close()


def test_no_room_for_the_thread_of_a_check_is_a_failure_that_passes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """It is started as soon as there is room."""
    caplog.set_level(logging.CRITICAL, "resilience_mw")
    full = threading.Event()
    full.set()
    start = threading.Thread.start

    def refuse(self: threading.Thread) -> None:
        if self.name.startswith("resilience-mw-check-") and full.is_set():
            raise RuntimeError("can't start new thread")
        start(self)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with asking({"db": Check(lambda: True, interval=0.01)}) as monitor:
        until(lambda: only(monitor).reason == "not asked")
        full.clear()
        until(lambda: monitor.ready)


def test_a_loop_that_replaces_one_that_has_ended_is_taken():
    """An app without lifespan is told of neither: whoever asks it does so in the one that runs."""
    ran: list[Any] = []

    async def later() -> None:
        ran.append(asyncio.get_running_loop())

    async def hello(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    app = protect(hello, Config(health=Health(checks={"db": Check(later, interval=0.01)})))
    scope = {"type": "http", "method": "GET", "path": "/readyz", "headers": []}

    async def ready() -> object:
        while True:
            statuses: list[int] = []

            async def send(message: Any, statuses: list[int] = statuses) -> None:
                statuses.append(message.get("status", 0))

            await app(dict(scope), None, send)
            if statuses[0] == 200:
                return asyncio.get_running_loop()
            await asyncio.sleep(0.005)

    loops = [asyncio.run(asyncio.wait_for(ready(), 10))]
    until(lambda: not app.policies[0].ready)
    loops.append(asyncio.run(asyncio.wait_for(ready(), 10)))
    app.close()
    assert set(ran) == set(loops)
    assert len(set(ran)) == 2


def test_nothing_is_lost_between_two_lives():
    """Whenever it is stopped, what it was about to ask is asked by the next."""
    checks = {f"n{number}": Check(lambda: True, interval=60) for number in range(20)}
    monitor = Monitor(checks)
    for pause in (0.0, 0.0005, 0.001, 0.002, 0.004):
        monitor.start()
        time.sleep(pause)
        monitor.close()
    monitor.start()
    until(lambda: monitor.known)
    assert monitor.ready
    monitor.close()
