"""What is read of a request while it waits, and that the app gets all of it."""

from __future__ import annotations

import asyncio
import gc

import pytest

from resilience_mw.asgi import Guard
from resilience_mw.asgi.waiting import MAX_BUFFERED
from resilience_mw.core import DeadlinePolicy

from .harness import PATIENCE, Exchange, Message, hello, run, scope, until
from .queueing import DISCONNECT, body_of, free, full, part


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("timed", [False, True], ids=["plain", "with receive timeout"])
@pytest.mark.parametrize("early", range(5))
def test_what_was_read_while_waiting_is_handed_on_in_order(loop, timed, early):
    """Whether it came before the grant or after it, or was being read just then."""
    parts = [part(b"a"), part(b"b"), part(b""), part(b"c", False)]

    async def main():
        seen = []

        async def app(scope, receive, send):
            seen.extend(await body_of(receive))
            await hello(scope, receive, send)
            assert await receive() == DISCONNECT

        gate = full()
        guard = Guard(app, *[DeadlinePolicy(PATIENCE)] * timed, gate)
        exchange = Exchange()
        queue: asyncio.Queue[Message] = asyncio.Queue()
        for message in parts[:early]:
            queue.put_nowait(message)
        task = asyncio.ensure_future(guard(exchange.scope, queue.get, exchange.send))
        await until(lambda: gate.queued == 1 and queue.empty())
        free(gate)
        for message in parts[early:]:
            await asyncio.sleep(0)
            queue.put_nowait(message)
        await until(lambda: exchange.status == 200)
        queue.put_nowait(DISCONNECT)
        await task
        assert seen == parts
        assert gate.inflight == 0
        guard.close()

    run(main(), loop)


def test_an_app_that_reads_nothing_leaves_no_reading_behind():
    """What was begun while waiting is stopped when the request ends."""

    async def main():
        gate = full()
        guard = Guard(hello, gate)
        exchange = Exchange()
        task = exchange.start(guard)
        await until(lambda: gate.queued == 1)
        await asyncio.sleep(0)
        free(gate)
        await task
        assert exchange.status == 200

    run(main())


def test_not_more_than_a_bounded_part_of_a_body_is_read_ahead():
    """The rest stays with the server, which slows the client down."""

    async def main():
        gate = full()
        reads = 0

        async def receive():
            nonlocal reads
            reads += 1
            return part(b"x" * (MAX_BUFFERED // 4))

        lengths = []

        async def app(scope, receive, send):
            lengths.extend([len((await receive())["body"]) for _ in range(6)])
            await hello(scope, receive, send)

        guard = Guard(app, gate)
        exchange = Exchange()
        task = asyncio.ensure_future(guard(exchange.scope, receive, exchange.send))
        await until(lambda: gate.queued == 1 and reads >= 4)
        for _ in range(20):
            await asyncio.sleep(0)
        assert reads == 4
        free(gate)
        await task
        assert lengths == [MAX_BUFFERED // 4] * 6

    run(main())


def test_a_reader_that_gives_up_loses_nothing():
    """Whoever polls with a timeout gets the next message at the next poll."""

    async def main():
        gate = full()
        queue: asyncio.Queue[Message] = asyncio.Queue()
        seen: list[Message] = []

        async def app(scope, receive, send):
            while not seen or seen[-1]["more_body"]:
                try:
                    seen.append(await asyncio.wait_for(receive(), 0.005))
                except TimeoutError:
                    continue
            await hello(scope, receive, send)

        guard = Guard(app, gate)
        exchange = Exchange()
        task = asyncio.ensure_future(guard(exchange.scope, queue.get, exchange.send))
        await until(lambda: gate.queued == 1)
        free(gate)
        for message in (part(b"a"), part(b"b", False)):
            await asyncio.sleep(0.02)
            queue.put_nowait(message)
        await task
        assert seen == [part(b"a"), part(b"b", False)]

    run(main())


def test_a_server_that_fails_while_we_read_ahead_fails_the_request():
    """Its error is the server's own to see, and the place in the queue is given up."""

    async def main():
        gate = full()

        async def receive():
            raise OSError("reset")

        exchange = Exchange()
        with pytest.raises(OSError, match="reset"):
            await Guard(hello, gate)(exchange.scope, receive, exchange.send)
        assert (gate.queued, gate.inflight, exchange.sent) == (0, 1, [])

    run(main())


def test_an_error_that_nobody_asked_for_is_not_logged():
    """What was being read when the app ended has no reader."""

    async def main():
        problems = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, what: problems.append(what))
        gate = full()
        fail = asyncio.Event()

        async def receive():
            await fail.wait()
            raise OSError("reset")

        async def app(scope, receive, send):
            fail.set()
            await asyncio.sleep(0.01)
            await hello(scope, receive, send)

        exchange = Exchange()
        task = asyncio.ensure_future(Guard(app, gate)(exchange.scope, receive, exchange.send))
        await until(lambda: gate.queued == 1)
        free(gate)
        await task
        del task
        gc.collect()
        await asyncio.sleep(0)
        assert problems == []

    run(main())


def test_waiting_in_two_queues_reads_ahead_once():
    """The body that came during the first wait is not lost in the second."""

    async def main():
        outer, inner = full(), full()
        seen = []

        async def app(scope, receive, send):
            seen.extend(await body_of(receive))
            await hello(scope, receive, send)

        guard = Guard(app, outer, inner)
        exchange = Exchange(scope(method="POST"), [part(b"a"), part(b"b", False)])
        task = exchange.start(guard)
        await until(lambda: outer.queued == 1)
        free(outer)
        await until(lambda: inner.queued == 1)
        free(inner)
        await task
        assert seen == [part(b"a"), part(b"b", False)]
        assert (outer.inflight, inner.inflight) == (0, 0)

    run(main())
