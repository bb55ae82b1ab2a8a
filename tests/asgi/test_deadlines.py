"""Deadlines on running requests: who is answered when, and what becomes of the app."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
import logging
import time
from typing import Any

import anyio
import pytest

from resilience_mw import remaining
from resilience_mw.asgi import Guard
from resilience_mw.asgi.pulse import PERIOD
from resilience_mw.core import DeadlinePolicy, Gate

from .harness import Exchange, Holding, aside, call, hello, run, until

SOON = 0.04


def guarded(app, timeout=SOON, **options):
    """Return a guard with a deadline and a gate, and both policies."""
    deadline, gate = DeadlinePolicy(timeout, receive_timeout=0.0, **options), Gate(1)
    return Guard(app, deadline, gate), deadline, gate


def assert_late(exchange: Exchange) -> None:
    """Check the answer that is given at the deadline."""
    assert (exchange.status, exchange.text) == (504, b"Gateway Timeout")
    assert exchange.headers[b"content-length"] == b"15"
    assert [message["type"] for message in exchange.sent] == [
        "http.response.start",
        "http.response.body",
    ]


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_request_without_a_response_is_answered_at_its_deadline(loop):
    """504, not before the deadline; the app's task is cancelled and its slot comes back."""

    async def main():
        cancelled = []

        async def app(scope, receive, send):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(time.monotonic())
                raise

        guard, deadline, gate = guarded(app)
        began = time.monotonic()
        exchange = await call(guard)
        assert_late(exchange)
        assert cancelled[0] - began >= SOON
        assert (deadline.expired, gate.inflight, gate.admitted) == (1, 0, 1)
        assert guard.snapshot().refused == {"deadline": 1}
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        guard.close()

    run(main(), loop)


def test_a_request_in_time_is_left_alone():
    """Nothing is counted, and nothing is left behind."""

    async def main():
        guard, deadline, _ = guarded(hello, 20.0)
        for _ in range(3):
            assert (await call(guard)).text == b"ok"
        assert (deadline.expired, guard._running) == (0, set())
        guard.close()

    run(main())


def test_without_a_timeout_there_is_no_deadline():
    """Only the header may set one then."""

    async def main():
        left: list[Any] = []

        async def app(scope, receive, send):
            left.append(remaining())
            await hello(scope, receive, send)

        guard, _, _ = guarded(app, None, header="x-timeout")
        await call(guard)
        await call(guard, headers=[(b"x-timeout", b"7")])
        assert left[0] is None
        assert 0.0 < left[1] <= 7.0
        guard.close()

    run(main())


def test_a_header_shortens_the_deadline_of_one_request():
    """The others keep theirs."""

    async def main():
        holding = Holding()
        guard, deadline, _ = guarded(holding, 20.0, header="x-timeout")
        assert_late(await call(guard, headers=[(b"x-timeout", b"30ms")]))
        holding.go.set()
        assert (await call(guard)).status == 200
        assert deadline.expired == 1
        guard.close()

    run(main())


def test_a_shorter_deadline_that_comes_later_is_met_first():
    """One tick watches all, in whatever order they came."""

    async def main():
        guard = Guard(Holding(), DeadlinePolicy(20.0, receive_timeout=0.0, header="x-timeout"))
        ended = []

        async def send(milliseconds):
            timeout = f"{milliseconds}ms".encode()
            assert_late(await call(guard, headers=[(b"x-timeout", timeout)]))
            ended.append(milliseconds)

        await asyncio.gather(*(send(ms) for ms in (400, 300, 200, 100, 1)))
        assert ended == [1, 100, 200, 300, 400]
        guard.close()

    run(main())


def test_a_response_that_has_started_is_never_cut():
    """However long its body takes."""

    async def main():
        async def app(scope, receive, send):
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await asyncio.sleep(SOON * 3)
            await send({"type": "http.response.body", "body": b"late but whole"})

        guard, deadline, _ = guarded(app)
        exchange = await call(guard)
        assert (exchange.status, exchange.text) == (200, b"late but whole")
        assert deadline.expired == 0
        guard.close()

    run(main())


def test_what_an_app_sends_after_its_deadline_is_muted():
    """It was answered for; its own response comes too late, and its end is no error."""

    async def main():
        async def app(scope, receive, send):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await hello(scope, receive, send)

        guard, _, gate = guarded(app)
        assert_late(await call(guard))
        assert gate.inflight == 0
        guard.close()

    run(main())


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


def test_an_app_that_fails_after_its_deadline_is_logged(caplog):
    """The server has no use for the error; the developer may."""
    caplog.set_level(logging.DEBUG, "resilience_mw")

    async def main():
        async def app(scope, receive, send):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise ValueError("confused") from None

        guard, _, _ = guarded(app)
        assert_late(await call(guard))
        guard.close()

    run(main())
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert caplog.records[0].exc_info is not None


def test_an_app_that_fails_in_time_fails_as_without_us():
    """The server sees the error."""

    async def main():
        async def app(scope, receive, send):
            raise ValueError("as always")

        guard, _, gate = guarded(app)
        with pytest.raises(ValueError, match="as always"):
            await call(guard)
        assert gate.inflight == 0
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


def test_the_call_does_not_return_before_the_late_answer_is_out():
    """Servers take the return of the app as the end of the request."""

    async def main():
        guard, _, gate = guarded(Holding())
        exchange = Exchange(hold_sends=True)
        task = exchange.start(guard)
        await until(lambda: guard.snapshot().refused)
        await asyncio.sleep(PERIOD * 3)
        assert not task.done()
        exchange.readable.set()
        await task
        assert_late(exchange)
        assert gate.inflight == 0
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


def test_a_late_answer_that_cannot_be_sent_is_no_error(caplog):
    """The client has left; the app ends as it would have."""
    caplog.set_level(logging.DEBUG, "resilience_mw")

    async def main():
        guard, deadline, gate = guarded(Holding())
        exchange = Exchange()

        async def send(message):
            raise OSError("closed")

        await guard(exchange.scope, exchange.receive, send)
        assert (deadline.expired, gate.inflight) == (1, 0)
        guard.close()

    run(main())
    assert [record.levelname for record in caplog.records] == ["DEBUG"]


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


def test_context_variables_are_the_same_inside_and_outside():
    """The app runs in the task, and so in the context, of the server."""
    variable = contextvars.ContextVar("variable", default="unset")

    async def main():
        async def app(scope, receive, send):
            assert variable.get() == "outer"
            variable.set("app")
            await hello(scope, receive, send)

        guard, _, _ = guarded(app, 20.0)

        async def outer(scope, receive, send):
            variable.set("outer")
            await guard(scope, receive, send)
            assert variable.get() == "app"

        assert (await call(outer)).status == 200
        guard.close()

    run(main())


def test_remaining_counts_down_and_is_none_outside():
    """For the timeouts of what a view calls; in its tasks and threads, too."""

    async def main():
        assert remaining() is None
        seen: list[Any] = []

        async def app(scope, receive, send):
            seen.append(remaining())
            seen.append(await asyncio.create_task(left()))
            seen.append(await asyncio.to_thread(remaining))
            await hello(scope, receive, send)

        async def left():
            return remaining()

        guard, _, _ = guarded(app, 10.0)
        await call(guard)
        assert 10.0 >= seen[0] >= seen[1] >= seen[2] > 0.0
        assert remaining() is None
        guard.close()

    run(main())


def test_remaining_sees_the_nearest_deadline_around_it():
    """A guard further in inherits it, and takes it back when it has ended."""

    async def main():
        seen: dict[str, Any] = {}

        async def app(scope, receive, send):
            seen["app"] = remaining()
            await hello(scope, receive, send)

        inner, _, _ = guarded(app, 50.0)

        async def between(scope, receive, send):
            seen["before"] = remaining()
            await inner(scope, receive, send)
            seen["after"] = remaining()

        outer, _, _ = guarded(between, 10.0)
        await call(outer)
        assert 10.0 >= seen["before"] >= seen["app"] >= seen["after"] > 0.0
        inner.close()
        outer.close()

    run(main())


def test_the_outer_deadline_holds_for_an_inner_guard():
    """One answer, whoever gives it, and no cancellation left over."""

    async def main():
        inner, _, inner_gate = guarded(Holding(), 20.0)
        outer, _, outer_gate = guarded(aside(inner))
        assert_late(await call(outer))
        assert (inner_gate.inflight, outer_gate.inflight) == (0, 0)
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        inner.close()
        outer.close()

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
