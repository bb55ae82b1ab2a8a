"""Deadlines over endpoints that run in a thread pool."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
import types
from typing import Any

import anyio
import anyio.to_thread
import pytest
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from resilience_mw import remaining
from resilience_mw.asgi import Guard
from resilience_mw.asgi.pulse import PERIOD
from resilience_mw.core import DeadlinePolicy, Gate

from .harness import PATIENCE, Exchange, Holding, call, run, until

SOON = 0.04


class Empty(BaseHTTPMiddleware):
    """Runs the endpoint in a task of its own."""

    async def dispatch(self, request, call_next):
        return await call_next(request)


@pytest.mark.parametrize("middlewares", [[], [Middleware(Empty)]], ids=["plain", "in a child task"])
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_slot_and_thread_are_held_until_the_endpoint_has_ended(middlewares, loop):
    """The client has its 504 at the deadline; the work that goes on is still load."""
    go, running = threading.Event(), threading.Semaphore(0)

    def endpoint(request):
        running.release()
        go.wait(PATIENCE)
        return PlainTextResponse("late")

    async def main():
        limiter = anyio.to_thread.current_default_thread_limiter()
        gate = Gate(1)
        app = Starlette(routes=[Route("/", endpoint)], middleware=middlewares)
        guard = Guard(app, DeadlinePolicy(SOON), gate)
        exchange = Exchange()
        task = exchange.start(guard)
        await until(lambda: len(exchange.sent) == 2)
        assert exchange.status == 504
        await asyncio.sleep(PERIOD * 3)
        assert (gate.inflight, limiter.borrowed_tokens, task.done()) == (1, 1, False)
        assert (await call(guard)).status == 503
        go.set()
        await task
        assert (gate.inflight, limiter.borrowed_tokens) == (0, 0)
        assert len(exchange.sent) == 2
        assert running._value == 1
        guard.close()

    run(main(), loop)


def test_timeouts_do_not_add_threads():
    """As many work at once as the pool has tokens, however many requests are late."""
    go = threading.Event()
    lock, now, most = threading.Lock(), 0, 0

    def endpoint(request):
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        go.wait(PATIENCE)
        with lock:
            now -= 1
        return PlainTextResponse("late")

    async def main():
        anyio.to_thread.current_default_thread_limiter().total_tokens = 3
        guard = Guard(Starlette(routes=[Route("/", endpoint)]), DeadlinePolicy(SOON))
        exchanges = [Exchange() for _ in range(12)]
        tasks = [exchange.start(guard) for exchange in exchanges]
        await until(lambda: all(len(exchange.sent) == 2 for exchange in exchanges))
        go.set()
        await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE)
        assert [exchange.status for exchange in exchanges] == [504] * 12
        guard.close()

    run(main())
    assert most == 3


def test_who_waits_for_a_thread_is_cancelled_at_its_deadline():
    """Its endpoint never runs: nobody is there for the answer."""
    go, ran = threading.Event(), []

    def endpoint(request):
        ran.append(request.url.path)
        go.wait(PATIENCE)
        return PlainTextResponse("late")

    async def main():
        anyio.to_thread.current_default_thread_limiter().total_tokens = 1
        routes = [Route("/first", endpoint), Route("/second", endpoint)]
        guard = Guard(Starlette(routes=routes), DeadlinePolicy(SOON, receive_timeout=0.0))
        first = Exchange()
        first.scope["path"] = "/first"
        task = first.start(guard)
        await until(lambda: ran)
        second = await call(guard, "/second")
        assert second.status == 504
        assert not task.done()
        go.set()
        await task
        guard.close()

    run(main())
    assert ran == ["/first"]


def test_an_endpoint_that_goes_on_after_its_thread_is_cancelled_then():
    """As soon as nothing shields it any more, and before its next wait is over."""
    go = threading.Event()
    after = []

    async def endpoint(request):
        await run_in_threadpool(go.wait, PATIENCE)
        await asyncio.sleep(PATIENCE)
        after.append("slept")
        return PlainTextResponse("late")

    async def main():
        gate = Gate(1)
        app = Starlette(routes=[Route("/", endpoint)])
        guard = Guard(app, DeadlinePolicy(SOON), gate)
        exchange = Exchange()
        task = exchange.start(guard)
        await until(lambda: len(exchange.sent) == 2)
        assert gate.inflight == 1
        began = time.monotonic()
        go.set()
        await task
        assert time.monotonic() - began < PATIENCE / 2
        assert (gate.inflight, after) == (0, [])
        guard.close()

    run(main())


def test_a_shield_is_honoured_wherever_the_app_put_it():
    """In a scope inside a shielded one, too."""

    async def main():
        go = asyncio.Event()
        shielded = []

        async def app(scope, receive, send):
            with anyio.CancelScope(shield=True), anyio.CancelScope():
                await go.wait()
                shielded.append(True)
            await asyncio.sleep(PATIENCE)

        gate = Gate(1)
        guard = Guard(app, DeadlinePolicy(SOON), gate)
        exchange = Exchange()
        task = exchange.start(guard)
        await until(lambda: len(exchange.sent) == 2)
        await asyncio.sleep(PERIOD * 2)
        assert gate.inflight == 1
        go.set()
        await task
        assert (shielded, gate.inflight) == ([True], 0)
        guard.close()

    run(main())


def test_a_deadline_of_the_apps_own_is_left_to_work():
    """An anyio timeout inside ours fires first, and its scope is not confused."""

    async def main():
        async def app(scope, receive, send):
            with anyio.move_on_after(0.01) as inner:
                await asyncio.sleep(PATIENCE)
            assert inner.cancelled_caught
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await asyncio.sleep(PATIENCE)
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"in time"})

        guard = Guard(app, DeadlinePolicy(PATIENCE))
        assert (await call(guard)).text == b"in time"
        guard.close()

    run(main())


@pytest.mark.parametrize("module", ["absent", "strange"])
def test_without_anyio_or_with_another_one_deadlines_still_answer(module, monkeypatch):
    """Where it is not loaded nothing can be shielded; where it has changed, all may be."""
    name = "anyio._backends._asyncio"
    if module == "absent":
        monkeypatch.delitem(sys.modules, name, raising=False)
    else:
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))

    async def main():
        holding, gate = Holding(), Gate(1)
        guard = Guard(holding, DeadlinePolicy(SOON), gate)
        exchange = Exchange()
        task = exchange.start(guard)
        await until(lambda: len(exchange.sent) == 2)
        assert exchange.status == 504
        await asyncio.sleep(PERIOD * 2)
        assert gate.inflight == (module == "strange")
        holding.go.set()
        await task
        assert gate.inflight == 0
        guard.close()

    run(main())


@pytest.mark.parametrize("nest", ["anyio", "asyncio"])
def test_tasks_of_a_late_app_are_cancelled_with_it(nest):
    """The group ends its children; nothing is left behind."""
    ended = []

    async def work():
        try:
            await asyncio.sleep(PATIENCE)
        finally:
            ended.append(True)

    async def main():
        async def app(scope, receive, send):
            if nest == "anyio":
                async with anyio.create_task_group() as group:
                    group.start_soon(work)
                    group.start_soon(work)
            else:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(work())
                    tasks.create_task(work())

        guard = Guard(app, DeadlinePolicy(SOON))
        assert (await call(guard)).status == 504
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        guard.close()

    run(main())
    assert ended == [True, True]


def test_remaining_is_known_in_the_thread_of_a_sync_endpoint(caplog):
    """Frameworks copy the context into their pools."""
    caplog.set_level(logging.WARNING)
    seen: list[Any] = []

    def endpoint(request):
        seen.append(remaining())
        return PlainTextResponse("ok")

    async def main():
        guard = Guard(Starlette(routes=[Route("/", endpoint)]), DeadlinePolicy(10.0))
        assert (await call(guard)).status == 200
        guard.close()

    run(main())
    assert 0.0 < seen[0] <= 10.0
    assert caplog.records == []
