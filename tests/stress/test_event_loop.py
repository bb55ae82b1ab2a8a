"""Thousands of requests through a real guard, cancelled and failing at random."""

from __future__ import annotations

import asyncio
import random
from functools import partial
from typing import Any

import pytest

from resilience_mw.asgi import Guard
from resilience_mw.core import AIMD, AdaptiveGate, DeadlinePolicy, Gate, HealthPolicy
from tests.asgi.harness import Exchange, call, hello, run, scope, until

REQUESTS = 6000
LIMIT, INNER = 20, 12


class Broken(Exception):
    """Raised by the app."""


class Crowd:
    """The app, and what it saw."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = self.most = self.entered = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.entered += 1
        self.now += 1
        self.most = max(self.most, self.now)
        draw = self.random.random
        try:
            await self.pause()
            if draw() < 0.025:
                raise Broken
            if draw() < 0.3:
                while (await receive()).get("more_body"):
                    pass
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await self.pause()
            await send({"type": "http.response.body", "body": b"a", "more_body": True})
            if draw() < 0.025:
                raise Broken
            await self.pause()
            await send({"type": "http.response.body", "body": b"b"})
        finally:
            self.now -= 1

    async def pause(self) -> None:
        """Give way once, for long, or not at all."""
        kind = self.random.random()
        if kind < 0.4:
            await asyncio.sleep(0)
        elif kind < 0.6:
            await asyncio.sleep(self.random.random() * 0.004)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_nothing_is_leaked_and_the_limit_is_never_exceeded(loop, request):
    """6,000 requests, a third cancelled or gone, one in twenty failing, queues and deadlines on."""
    seed = request.config.getoption("randomly_seed", 1)
    draw = random.Random(seed)

    async def main():
        crowd = Crowd(seed)
        outer = Gate(LIMIT, max_queue=60, max_wait=0.03, exempt=("/static/",), name="outer")
        inner = AdaptiveGate(AIMD(initial_limit=INNER, max_limit=INNER, window=0.01))
        deadline = DeadlinePolicy(0.5, receive_timeout=0.4, header="x-timeout")
        guard = Guard(crowd, HealthPolicy(), deadline, outer, inner)
        statuses: dict[object, int] = {}
        running: set[asyncio.Task[Any]] = set()
        problems: list[object] = []

        def ended(exchange: Exchange, task: asyncio.Task[Any]) -> None:
            running.discard(task)
            error = None if task.cancelled() else task.exception()
            kind: object = "cancelled" if task.cancelled() else exchange.status
            if error is not None:
                kind = "failed"
                if not isinstance(error, Broken):
                    problems.append(error)
            if len(exchange.starts) > 1:
                problems.append(exchange)
            statuses[kind] = statuses.get(kind, 0) + 1

        for _ in range(REQUESTS):
            timeout = draw.choice([b""] * 48 + [b"2ms", b"nonsense"])
            body = [{"type": "http.request", "body": b"x", "more_body": True}] * draw.randrange(3)
            exchange = Exchange(
                scope(headers=[(b"x-timeout", timeout)] * bool(timeout)),
                [*body, {"type": "http.request", "body": b""}],
            )
            task = exchange.start(guard)
            running.add(task)
            task.add_done_callback(partial(ended, exchange))
            fate, when = draw.random(), draw.random() * 0.01
            if fate < 0.1:
                task.cancel()
            elif fate < 0.3:
                asyncio.get_running_loop().call_later(when, task.cancel)
            elif fate < 0.35:
                asyncio.get_running_loop().call_later(when, exchange.gone.set)
            if draw.random() < 0.05:
                await asyncio.sleep(0.002)
                assert outer.inflight <= LIMIT
                assert inner.inflight <= INNER
        await until(lambda: not running)

        assert problems == []
        assert crowd.most <= INNER
        assert crowd.now == 0
        snapshot = guard.snapshot()
        for gate in (outer, inner):
            assert (gate.inflight, gate.queued) == (0, 0)
        assert (snapshot.inflight, snapshot.queued) == (0, 0)
        assert guard._running == set()
        assert inner.admitted == crowd.entered
        assert sum(statuses.values()) == REQUESTS
        assert statuses["cancelled"] > REQUESTS * 0.1
        assert {200, 503, "failed"} <= set(statuses)
        guard.app = hello
        assert [(await call(guard)).status for _ in range(5)] == [200] * 5
        guard.close()

    run(main(), loop)
