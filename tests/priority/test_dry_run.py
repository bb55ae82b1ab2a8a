"""Dry runs on real servers and in real guards: nothing is refused, and the counts are right."""

from __future__ import annotations

import asyncio
import json
import threading
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from resilience_mw import Backpressure, Config, Deadline, protect
from resilience_mw.asgi import upkeep
from resilience_mw.core.priority import PriorityGate
from resilience_mw.core.shadow import Shadow
from resilience_mw.policies import for_backpressure
from tests.asgi.harness import Exchange, run, scope, until
from tests.servers import Server, gunicorn, uvicorn

BURST = 12
EXPECTED = {"queue_full": 7, "queue_timeout": 3}
"""Of twelve at once two run and three wait, in vain."""

LAUNCHERS: dict[str, Callable[[str], Server]] = {
    "uvicorn": lambda config: uvicorn("tests.priority.asgi:app", env={"CONFIG": config}),
    "gunicorn": lambda config: gunicorn(
        "tests.priority.wsgi:app", env={"CONFIG": config}, threads=BURST + 4
    ),
}


def ask(url: str) -> int:
    """Return the status of the answer."""
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def traffic(server: Server) -> tuple[Counter[int], dict[str, Any]]:
    """Send five requests one after the other, then many at once; return statuses and snapshot."""
    statuses = Counter(ask(f"{server.url}/quick") for _ in range(5))
    with ThreadPoolExecutor(BURST) as pool:
        statuses.update(pool.map(ask, [f"{server.url}/wait"] * BURST))
    with urllib.request.urlopen(f"{server.url}/snapshot", timeout=20) as answer:
        return statuses, json.load(answer)


@pytest.mark.parametrize("launch", LAUNCHERS.values(), ids=LAUNCHERS)
def test_a_dry_run_counts_what_the_real_gate_refuses(
    launch: Callable[[str], Server], serve: Callable[[Server], Server]
):
    """The same traffic on two servers: refused on one, served and counted alike on the other."""
    with ThreadPoolExecutor() as pool:
        real, dry = map(serve, pool.map(launch, ["small", "small, tried out"]))
        (statuses, state), (dry_statuses, dry_state) = pool.map(traffic, [real, dry])
    assert statuses == {200: 7, 503: 10}
    assert state["refused"] == EXPECTED
    assert (state["admitted"], state["would_refuse"]) == (7, {})
    assert dry_statuses == {200: 17}
    assert dry_state["would_refuse"] == EXPECTED
    assert (dry_state["admitted"], dry_state["refused"]) == (7, {})
    assert (dry_state["inflight"], dry_state["queued"]) == (0, 0)
    assert dry_state["policies"][-1]["dry_run"]


def test_the_option_wraps_the_gate_that_would_be_used():
    """Plain or with ranks; without it there is no wrapper."""
    (shadow,) = for_backpressure(Backpressure(dry_run=True, priority="X-Priority"))
    assert isinstance(shadow, Shadow)
    assert isinstance(shadow.gate, PriorityGate)
    assert not any(isinstance(policy, Shadow) for policy in for_backpressure(Backpressure()))


class App:
    """An ASGI app whose responses go on until it is told to end them."""

    def __init__(self) -> None:
        self.end = asyncio.Event()
        self.started = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/late":
            await asyncio.sleep(0.4)
        self.started += 1
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x", "more_body": True})
        if scope["path"] == "/stream":
            await self.end.wait()
        await send({"type": "http.response.body"})


def tried_out(app: Any, **options: Any) -> Any:
    """Return a guard with a gate of one slot that is only tried out."""
    backpressure = Backpressure(law="aimd", max_limit=1, dry_run=True, **options)
    return protect(app, Config(backpressure=backpressure, deadline=Deadline(timeout=0.15)))


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_streams_without_a_slot_change_nothing(loop: str, monkeypatch: pytest.MonkeyPatch):
    """One stream holds the slot; those beside it are none of the gate's."""
    monkeypatch.setattr(upkeep, "STREAM_AFTER", 0.02)

    async def main() -> None:
        app = App()
        backpressure = Backpressure(max_limit=1, queue_size=0, dry_run=True)
        guard = protect(app, Config(backpressure=backpressure))
        requests = [Exchange(scope("/stream")) for _ in range(3)]
        tasks = [request.start(guard) for request in requests]
        await until(lambda: app.started == 3)
        shadow = guard.policies[-1]
        assert isinstance(shadow, Shadow)
        await until(lambda: shadow.snapshot().streams == 1)
        await asyncio.sleep(0.1)
        assert shadow.snapshot().streams == 1
        app.end.set()
        await asyncio.gather(*tasks)
        assert [request.status for request in requests] == [200] * 3
        snapshot = guard.snapshot()
        assert snapshot.would_refuse == {"limit": 2}
        assert (snapshot.inflight, snapshot.admitted, shadow.snapshot().streams) == (0, 1, 0)
        guard.close()

    run(main(), loop)


def test_a_deadline_ends_a_wait_that_nobody_waits():
    """What would have been refused for its deadline in the queue is answered by its own."""

    async def main() -> None:
        guard = tried_out(App(), queue_size=5, queue_timeout=5)
        requests = [Exchange(scope("/late")) for _ in range(2)]
        await asyncio.gather(*(request.start(guard) for request in requests))
        assert [request.status for request in requests] == [504, 504]
        snapshot = guard.snapshot()
        assert snapshot.refused == {"deadline": 2}
        assert snapshot.would_refuse == {"deadline": 1}
        assert (snapshot.inflight, snapshot.queued) == (0, 0)
        guard.close()

    run(main())


def test_exempt_paths_are_neither_counted_nor_refused():
    """As in a real gate."""

    async def main() -> None:
        app = App()
        guard = tried_out(app, queue_size=0, exempt=("/static/",))
        held = Exchange(scope("/stream")).start(guard)
        await until(lambda: app.started)
        assert (await Exchange(scope("/static/x")).through(guard)).status == 200
        assert guard.snapshot().would_refuse == {}
        assert (await Exchange(scope("/x")).through(guard)).status == 200
        assert guard.snapshot().would_refuse == {"limit": 1}
        app.end.set()
        await held
        guard.close()

    run(main())


def test_a_client_that_leaves_is_not_counted():
    """It would have left the queue."""

    async def main() -> None:
        guard = protect(
            asyncio_forever,
            Config(backpressure=Backpressure(max_limit=1, dry_run=True)),
            interface="asgi",
        )
        first, second = (Exchange(scope()).start(guard) for _ in range(2))
        await until(lambda: guard.snapshot().queued == 1)
        second.cancel()
        await until(second.done)
        assert guard.snapshot().queued == 0
        first.cancel()
        await until(first.done)
        assert guard.snapshot().would_refuse == {}
        guard.close()

    run(main())


async def asyncio_forever(scope: Any, receive: Any, send: Any) -> None:
    """Never answer."""
    await asyncio.Event().wait()


def test_threads_share_a_dry_run():
    """Under the guard's lock: what many threads do at once adds up."""
    gate = Backpressure(law="aimd", max_limit=3, queue_size=2, queue_timeout=0.01, dry_run=True)

    def respond(environ: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", [])
        return [b"x"]

    guard = protect(respond, Config(backpressure=gate), interface="wsgi")
    statuses: list[str] = []

    def work() -> None:
        for _ in range(200):
            body = guard(
                {"REQUEST_METHOD": "GET", "PATH_INFO": "/"},
                lambda status, headers, exc_info=None: statuses.append(status),
            )
            b"".join(body)
            body.close()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == ["200 OK"] * 1600
    snapshot = guard.snapshot()
    assert (snapshot.inflight, snapshot.queued, snapshot.refused) == (0, 0, {})
    assert snapshot.admitted + sum(snapshot.would_refuse.values()) <= 1600
    shadow = guard.policies[-1]
    assert isinstance(shadow, Shadow)
    assert shadow._beside == {}
    assert shadow._running == 0
