"""Requests that do not arrive: when they are given up, and with what."""

from __future__ import annotations

import asyncio

import pytest

from resilience_mw.asgi import Guard
from resilience_mw.core import DeadlinePolicy

from .harness import PATIENCE, aside, call, hello, run
from .uploads import SOON, assert_unreceived, guarded, part, read, read_all, upload


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


def test_a_get_without_a_body_is_received_at_once():
    """Nothing is timed that is already there."""

    async def main():
        guard, deadline, _ = guarded(read_all, 0.0001)
        for _ in range(3):
            assert (await call(guard)).status == 200
        assert deadline.unreceived == 0
        guard.close()

    run(main())


def test_a_stalled_upload_is_the_clients_fault_even_at_the_same_moment():
    """By default both times are 30 s: the answer is 408 and close, not 504."""

    async def main():
        guard, deadline, _ = guarded(read_all, SOON, timeout=SOON)
        assert_unreceived(await upload(part()).through(guard))
        assert (deadline.expired, deadline.unreceived) == (0, 1)
        guard.close()

    run(main())
