"""What apps make of the disconnect they see after a 408, and who else may cancel them."""

from __future__ import annotations

import asyncio
import itertools
import logging

import pytest
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from resilience_mw.asgi.pulse import PERIOD

from .harness import PATIENCE, Exchange, hello, run, scope, until
from .uploads import SOON, assert_unreceived, guarded, part, read, read_all, upload


@pytest.mark.parametrize("method", ["body", "stream"])
def test_starlette_does_not_make_a_500_of_it(method, caplog):
    """Its error middleware answers, too; only our answer goes out, and nobody is alarmed."""
    caplog.set_level(logging.WARNING)

    async def endpoint(request: Request):
        if method == "body":
            await request.body()
        else:
            async for _ in request.stream():
                pass
        return PlainTextResponse("ok")

    async def main():
        app = Starlette(routes=[Route("/", endpoint, methods=["POST"])])
        guard, deadline, gate = guarded(app)
        exchange = await upload(part()).through(guard)
        assert_unreceived(exchange)
        assert (deadline.unreceived, gate.inflight) == (1, 0)
        guard.close()

    run(main())
    assert caplog.records == []


def test_an_app_that_reports_the_disconnect_may_clean_up_for_long():
    """It keeps its slot meanwhile, and what it sends is muted."""

    async def main():
        go = asyncio.Event()

        async def app(scope, receive, send):
            await read(receive)
            await go.wait()
            await hello(scope, receive, send)
            raise ClientDisconnect

        guard, _, gate = guarded(app)
        exchange = upload(part())
        task = exchange.start(guard)
        await until(lambda: len(exchange.sent) == 2)
        await asyncio.sleep(PERIOD * 2)
        assert (gate.inflight, task.done()) == (1, False)
        go.set()
        await task
        assert_unreceived(exchange)
        assert gate.inflight == 0
        guard.close()

    run(main())


def test_an_app_that_goes_on_reading_is_told_again():
    """Whatever is left of the body is not for it."""

    async def main():
        kinds = []

        async def app(scope, receive, send):
            await read(receive)
            kinds.extend([(await receive())["type"] for _ in range(3)])

        guard, _, _ = guarded(app)
        assert_unreceived(await upload(part()).through(guard))
        assert kinds == ["http.disconnect"] * 3
        guard.close()

    run(main())


def test_a_child_task_may_be_the_one_that_reads():
    """It gets the disconnect; its parent is left alone."""

    async def main():
        async def app(scope, receive, send):
            async with asyncio.TaskGroup() as group:
                reading = group.create_task(read(receive))
            assert reading.result() == (b"x", "http.disconnect")

        guard, _, gate = guarded(app)
        assert_unreceived(await upload(part()).through(guard))
        assert gate.inflight == 0
        guard.close()

    run(main())


@pytest.mark.parametrize("first", ["we", "they"])
def test_a_cancellation_from_outside_is_not_taken_for_ours(first):
    """In the same tick, in either order: the reader is cancelled."""

    async def main():
        guard, _, gate = guarded(read_all, PATIENCE)
        exchange = upload(part())
        task = exchange.start(guard)
        await until(lambda: any(request.reader for request in guard._running))
        (request,) = guard._running
        request.arrived -= PATIENCE + 1.0
        for who in ("we", "they") if first == "we" else ("they", "we"):
            if who == "we":
                guard._upkeep.beat(request.arrived + PATIENCE + 1.0)
            else:
                task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert gate.inflight == 0
        await asyncio.sleep(0)
        guard.close()

    run(main())


def test_a_reader_that_is_cancelled_before_is_cancelled():
    """A framework stops listening by cancelling: that is between it and its task."""

    async def main():
        async def app(scope, receive, send):
            reading = asyncio.create_task(read(receive))
            await asyncio.sleep(0)
            reading.cancel()
            await asyncio.wait([reading])
            assert reading.cancelled()
            await hello(scope, receive, send)

        guard, _, _ = guarded(app, PATIENCE)
        assert (await upload(part()).through(guard)).status == 200
        guard.close()

    run(main())


def test_the_deadline_cancels_a_reader_for_good():
    """A late request is cancelled also while it reads: that is no disconnect to live on after."""

    async def main():
        survived = []

        async def app(scope, receive, send):
            await read(receive)
            survived.append(True)
            await asyncio.Event().wait()

        guard, deadline, gate = guarded(app, PATIENCE, timeout=SOON)
        exchange = await upload(part()).through(guard)
        assert (exchange.status, survived) == (504, [])
        assert (deadline.expired, deadline.unreceived, gate.inflight) == (1, 0, 0)
        guard.close()

    run(main())


def test_the_deadline_ends_an_app_that_lives_on_after_its_408():
    """Its client has been answered for long: the slot must not wait for it."""

    async def main():
        async def app(scope, receive, send):
            await read(receive)
            await asyncio.Event().wait()

        guard, deadline, gate = guarded(app, SOON, timeout=SOON * 3)
        exchange = await upload(part()).through(guard)
        assert_unreceived(exchange)
        assert (deadline.expired, deadline.unreceived, gate.inflight) == (0, 1, 0)
        guard.close()

    run(main())


def test_reading_works_where_there_is_no_asyncio():
    """On another library the guard still passes bodies on: there is just nobody to time them."""
    seen = []

    async def app(scope, receive, send):
        seen.append(await read(receive))
        await hello(scope, receive, send)

    guard, _, gate = guarded(app, timeout=30.0)
    exchange = Exchange.__new__(Exchange)
    exchange.scope, exchange.sent, exchange.hold_sends = scope(method="POST"), [], False
    parts = itertools.chain([part(b"a"), part(b"b", False)])

    async def receive():
        return next(parts)

    coroutine = guard(exchange.scope, receive, exchange.send)
    with pytest.raises(StopIteration):
        coroutine.send(None)
    assert (exchange.status, seen, gate.inflight) == (200, [(b"ab", "http.request")], 0)
