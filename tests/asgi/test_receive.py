"""Requests that do not arrive: 408, and what the app sees."""

from __future__ import annotations

import asyncio
import itertools
import logging

import pytest
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from resilience_mw.asgi import Guard
from resilience_mw.asgi.pulse import PERIOD
from resilience_mw.core import DeadlinePolicy, Gate

from .harness import PATIENCE, Exchange, Message, aside, call, hello, run, scope, until

SOON = 0.04


def part(body: bytes = b"x", more: bool = True) -> Message:
    """Return a part of a body."""
    return {"type": "http.request", "body": body, "more_body": more}


def upload(*parts: Message, **facts) -> Exchange:
    """Return a request of which these parts arrive, and then nothing."""
    return Exchange(scope(method="POST", **facts), parts)


def guarded(app, receive_timeout=SOON, timeout=None, **options):
    """Return a guard with a receive timeout and a gate, and both policies."""
    deadline, gate = DeadlinePolicy(timeout, receive_timeout=receive_timeout, **options), Gate(1)
    return Guard(app, deadline, gate), deadline, gate


def assert_unreceived(exchange: Exchange) -> None:
    """Check the answer to a request that did not arrive in time."""
    assert (exchange.status, exchange.text) == (408, b"Request Timeout")
    assert exchange.headers[b"connection"] == b"close"
    assert len(exchange.sent) == 2


async def read(receive) -> tuple[bytes, str]:
    """Read a body; return it and the type of the last message."""
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return body, message["type"]


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("parts", [0, 1, 3], ids=["nothing", "a part", "parts"])
def test_a_body_that_stalls_is_given_up(parts, loop):
    """408 and close; the app sees the client leave, and its task is not cancelled."""

    async def main():
        seen = []

        async def app(scope, receive, send):
            seen.append(await read(receive))
            await hello(scope, receive, send)

        guard, deadline, gate = guarded(app)
        exchange = await upload(*[part()] * parts).through(guard)
        assert_unreceived(exchange)
        assert seen == [(b"x" * parts, "http.disconnect")]
        assert (deadline.unreceived, deadline.expired, gate.inflight) == (1, 0, 0)
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        guard.close()

    run(main(), loop)


def test_a_body_that_drips_is_given_up():
    """A byte now and then does not lengthen the time for the whole."""

    async def main():
        guard, deadline, gate = guarded(read_all)
        exchange = upload()

        async def receive():
            await asyncio.sleep(SOON / 10)
            return part()

        await guard(exchange.scope, receive, exchange.send)
        assert_unreceived(exchange)
        assert (deadline.unreceived, gate.inflight) == (1, 0)
        guard.close()

    run(main())


async def read_all(scope, receive, send):
    """Read the body, and answer."""
    await read(receive)
    await hello(scope, receive, send)


def test_a_body_in_time_is_handed_on_whole():
    """In its parts, and nothing is timed once it is there."""

    async def main():
        seen = []

        async def app(scope, receive, send):
            seen.append(await read(receive))
            await asyncio.sleep(SOON * 2)
            await hello(scope, receive, send)

        guard, deadline, _ = guarded(app)
        exchange = await upload(part(b"a"), part(b"b"), part(b"c", False)).through(guard)
        assert (exchange.status, seen) == (200, [(b"abc", "http.request")])
        assert deadline.unreceived == 0
        guard.close()

    run(main())


def test_listening_for_a_disconnect_is_no_reading():
    """Whoever has the whole body may wait for the client's end as long as it likes."""

    async def main():
        async def app(scope, receive, send):
            await read(receive)
            assert (await receive())["type"] == "http.disconnect"
            assert (await receive())["type"] == "http.disconnect"

        guard, deadline, _ = guarded(app)
        exchange = upload(part(b"", False))
        task = exchange.start(guard)
        await asyncio.sleep(SOON * 3)
        assert not task.done()
        exchange.gone.set()
        await task
        assert (exchange.sent, deadline.unreceived) == ([], 0)
        guard.close()

    run(main())


def test_an_app_that_does_not_read_is_not_given_up():
    """It has no need of the rest of the body."""

    async def main():
        async def app(scope, receive, send):
            await asyncio.sleep(SOON * 3)
            await hello(scope, receive, send)

        guard, deadline, _ = guarded(app)
        assert (await upload(part()).through(guard)).status == 200
        assert deadline.unreceived == 0
        guard.close()

    run(main())


def test_a_response_that_has_started_is_not_given_up():
    """An app may answer while it still reads."""

    async def main():
        async def app(scope, receive, send):
            await send({"type": "http.response.start", "status": 200, "headers": []})
            _, kind = await read(receive)
            await send({"type": "http.response.body", "body": kind.encode()})

        guard, deadline, _ = guarded(app)
        exchange = upload(part())
        task = exchange.start(guard)
        await asyncio.sleep(SOON * 3)
        exchange.gone.set()
        await task
        assert (exchange.status, exchange.text) == (200, b"http.disconnect")
        assert deadline.unreceived == 0
        guard.close()

    run(main())


def test_zero_turns_it_off():
    """The app waits as long as the server does."""

    async def main():
        guard, deadline, _ = guarded(read_all, 0.0, timeout=PATIENCE)
        exchange = upload(part())
        task = exchange.start(guard)
        await asyncio.sleep(SOON * 3)
        assert not task.done()
        exchange.gone.set()
        await task
        assert deadline.unreceived == 0
        guard.close()

    run(main())


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


def test_the_shortest_of_several_timeouts_holds():
    """Wherever it stands; off is not shortest."""

    async def main():
        row = [DeadlinePolicy(None, receive_timeout=t) for t in (PATIENCE, 0.0, SOON)]
        guard = Guard(read_all, *row)
        assert_unreceived(await upload(part()).through(guard))
        assert [policy.unreceived for policy in row] == [1, 0, 0]
        guard.close()

    run(main())


def test_an_inner_guard_gives_up_on_its_own_account():
    """The outer one takes its answer for the response."""

    async def main():
        inner, deadline, _ = guarded(read_all)
        outer, outer_deadline, gate = guarded(aside(inner), PATIENCE, timeout=PATIENCE)
        assert_unreceived(await upload(part()).through(outer))
        assert (deadline.unreceived, outer_deadline.unreceived, gate.inflight) == (1, 0, 0)
        inner.close()
        outer.close()

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


def test_a_get_without_a_body_is_received_at_once():
    """Nothing is timed that is already there."""

    async def main():
        guard, deadline, _ = guarded(read_all, 0.0001)
        for _ in range(3):
            assert (await call(guard)).status == 200
        assert deadline.unreceived == 0
        guard.close()

    run(main())
