"""Probes are answered whatever limits the rest, and count as no load."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from resilience_mw import Backpressure, Config, Deadline, Health, Limit, protect
from tests.asgi import harness
from tests.health.core.waiting import until
from tests.wsgi.harness import call

HEALTH = Health(
    checks={"up": "tcp://127.0.0.1:1"}, expose_details=True, unready_when_shedding=(0.9, 60)
)
CONFIGS = {
    "limit": Config(
        health=HEALTH,
        limit=Limit(max_concurrent_requests=1),
        backpressure=Backpressure(enabled=False),
    ),
    "aimd": Config(health=HEALTH, backpressure=Backpressure(law="aimd", max_limit=1, queue_size=0)),
    "adaptive": Config(health=HEALTH, backpressure=Backpressure(max_limit=1, queue_size=0)),
    "priority": Config(
        health=HEALTH,
        backpressure=Backpressure(
            max_limit=1, queue_size=0, priority="X-Priority", user=lambda exchange: "me"
        ),
    ),
    "deadline": Config(
        health=HEALTH,
        deadline=Deadline(timeout=1e-9, header="X-Timeout"),
        backpressure=Backpressure(enabled=False),
    ),
}
EXPECTED = {
    ("GET", "/livez"): 200,
    ("HEAD", "/livez"): 200,
    ("GET", "/startupz"): 200,
    ("GET", "/readyz"): 503,  # nobody listens on port 1
    ("HEAD", "/readyz"): 503,
    ("POST", "/livez"): 405,
}


@pytest.mark.parametrize("root", ["", "/mount"])
@pytest.mark.parametrize("query", ["", "verbose", "a=b&c"])
@pytest.mark.parametrize("name", CONFIGS)
def test_under_asgi(name: str, root: str, query: str):
    """While the only slot is taken, and with a deadline that nobody can keep."""
    holding = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await holding.wait()
        await harness.hello(scope, receive, send)

    guard = protect(app, CONFIGS[name])

    async def main() -> None:
        facts: dict[str, Any] = {"root": root, "query_string": query.encode()}
        running = harness.Exchange(harness.scope("/", **facts)).start(guard)
        await asyncio.sleep(0)
        refused = await harness.call(guard, "/", **facts)
        assert refused.status in (503, 504)
        for (method, path), status in EXPECTED.items():
            answer = await harness.call(guard, path, method=method, **facts)
            assert answer.status == status
            assert bool(answer.text) is (method != "HEAD")
        state = guard.snapshot()
        assert state.admitted <= 1
        assert state.policies[0].probes == len(EXPECTED) - 1
        holding.set()
        await running
        guard.close()

    harness.run(main())


@pytest.mark.parametrize("root", ["", "/mount"])
@pytest.mark.parametrize("query", ["", "verbose", "a=b&c"])
@pytest.mark.parametrize("name", [name for name in CONFIGS if name != "deadline"])
def test_under_wsgi(name: str, root: str, query: str):
    """While the only slot is taken."""
    holding, entered = threading.Event(), threading.Event()

    def app(environ: Any, start_response: Any) -> list[bytes]:
        entered.set()
        holding.wait(10)
        start_response("200 OK", [("Content-Length", "0")])
        return []

    guard = protect(app, CONFIGS[name])
    facts: dict[str, Any] = {"root": root, "QUERY_STRING": query}
    running = threading.Thread(target=call, args=(guard, "/"), kwargs=facts)
    running.start()
    until(entered.is_set)
    assert call(guard, "/", **facts)[0] == 503
    for (method, path), status in EXPECTED.items():
        code, body = call(guard, path, method=method, **facts)
        assert code == status
        assert bool(body) is (method != "HEAD")
    state = guard.snapshot()
    assert state.admitted == 1
    assert state.policies[0].probes == len(EXPECTED) - 1
    holding.set()
    running.join()
    guard.close()
