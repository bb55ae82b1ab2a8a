"""Cancelling what is late: once, cleanly, and without losing anybody else's cancellation."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import time

import anyio
import pytest

from resilience_mw.asgi.pulse import PERIOD

from .harness import Exchange, Holding, call, hello, run, until
from .late import assert_late, guarded


def test_an_app_that_swallows_the_cancellation_keeps_its_slot_to_its_end():
    """The client has its answer; the work is still load. It is cancelled once, not again."""

    async def main():
        go = asyncio.Event()
        cancellations = 0

        async def app(scope, receive, send):
            nonlocal cancellations
            while not go.is_set():
                try:
                    await go.wait()
                except asyncio.CancelledError:
                    cancellations += 1

        guard, _, gate = guarded(app)
        exchange = Exchange()
        task = exchange.start(guard)
        await until(lambda: len(exchange.sent) == 2)
        assert_late(exchange)
        await asyncio.sleep(PERIOD * 3)
        assert (gate.inflight, cancellations) == (1, 1)
        assert (await call(guard)).status == 503
        go.set()
        await task
        assert gate.inflight == 0
        guard.close()

    run(main())


@pytest.mark.parametrize("ending", ["returns", "raises", "is cancelled"])
def test_our_cancellation_is_settled_however_the_app_ends(ending):
    """Whatever comes after us in this task finds no cancellation pending or counted."""

    async def main():
        async def app(scope, receive, send):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if ending == "raises":
                    raise ValueError("confused") from None
                if ending == "is cancelled":
                    raise

        guard, _, gate = guarded(app)
        counts = []

        async def outer(scope, receive, send):
            await guard(scope, receive, send)
            task = asyncio.current_task()
            assert task is not None
            counts.append(task.cancelling())
            async with asyncio.timeout(20.0):
                await asyncio.sleep(0)

        assert_late(await call(outer))
        assert (counts, gate.inflight) == ([0], 0)
        guard.close()

    run(main())


def test_an_app_that_cancels_itself_is_cancelled():
    """Before its deadline that is between the app and the server."""

    async def main():
        async def app(scope, receive, send):
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(20.0)

        guard, _, gate = guarded(app)
        task = Exchange().start(guard)
        await asyncio.wait([task])
        assert task.cancelled()
        assert gate.inflight == 0
        guard.close()

    run(main())


@pytest.mark.parametrize("first", ["deadline", "outside"])
def test_a_cancellation_from_outside_is_not_lost_in_ours(first):
    """Both in the same tick: the client is answered, and the outer cancellation goes through."""

    async def main():
        holding = Holding()
        guard, _, gate = guarded(holding, 20.0)
        exchange = Exchange()
        task = exchange.start(guard)
        await until(lambda: holding.entered)
        if first == "outside":
            task.cancel()
        guard._upkeep.beat(time.monotonic() + 30.0)
        if first == "deadline":
            task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert gate.inflight == 0
        assert_late(exchange)
        guard.close()

    run(main())


def test_a_cancellation_from_outside_while_the_late_answer_is_sent_goes_through():
    """A server that shuts down waits for nobody who reads slowly."""

    async def main():
        guard, _, gate = guarded(Holding())
        exchange = Exchange(hold_sends=True)
        task = exchange.start(guard)
        await until(lambda: guard.snapshot().refused)
        await asyncio.sleep(PERIOD)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert gate.inflight == 0
        exchange.readable.set()
        guard.close()

    run(main())


def test_an_app_that_has_ended_is_not_cancelled_while_its_late_answer_is_sent():
    """The tick must not take the sending for the app: it would cancel the server's own task."""

    async def main():
        go = asyncio.Event()

        async def app(scope, receive, send):
            with anyio.CancelScope(shield=True):
                await go.wait()

        guard, _, gate = guarded(app)
        exchange = Exchange(hold_sends=True)
        task = exchange.start(guard)
        await until(lambda: guard.snapshot().refused)
        go.set()
        await asyncio.sleep(PERIOD * 3)
        exchange.readable.set()
        await asyncio.wait([task])
        assert not task.cancelled()
        assert_late(exchange)
        assert gate.inflight == 0
        guard.close()

    run(main())


def test_system_exit_goes_through_after_the_deadline():
    """As before it: whoever ends the process means it."""

    async def main():
        class Stop(BaseException):
            pass

        async def app(scope, receive, send):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise Stop from None

        guard, _, gate = guarded(app)
        with pytest.raises(Stop):
            await call(guard)
        assert gate.inflight == 0
        guard.close()

    run(main())


@pytest.mark.parametrize("state", ["cancelled just now", "living on"])
def test_a_request_that_dies_with_its_loop_after_the_deadline_gives_its_slot_back(state):
    """A coroutine that is being closed must not wait for anything, such as our answer."""

    async def stubborn(scope, receive, send):
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.Event().wait()

    guard, _, gate = guarded(stubborn, 20.0)

    async def main():
        exchange = Exchange()
        exchange.start(guard)
        await until(lambda: guard._running)
        guard._upkeep.beat(time.monotonic() + 30.0)
        if state == "living on":
            await until(lambda: len(exchange.sent) == 2)

    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda loop, context: None)
    loop.run_until_complete(main())
    assert gate.inflight == 1
    guard.close()
    loop.close()

    async def collect():
        await call(guard)
        gc.collect()  # wherever it happens: here there is a loop that could be waited on
        assert (gate.inflight, guard._running) == (0, set())
        guard.close()

    guard.app = hello
    run(collect())
