"""Waiting in a queue on an event loop: what is read meanwhile, and every race."""

from __future__ import annotations

import asyncio
import gc
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resilience_mw.asgi import Guard
from resilience_mw.asgi.waiting import MAX_BUFFERED, ReadAhead, wait_for
from resilience_mw.core import DeadlinePolicy, Gate, Policy, Ticket

from .harness import PATIENCE, Exchange, Holding, Message, call, hello, run, scope, until

DISCONNECT = {"type": "http.disconnect"}


def part(body: bytes, more: bool = True) -> Message:
    """Return a part of a body."""
    return {"type": "http.request", "body": body, "more_body": more}


def full(max_queue: int = 5, max_wait: float = PATIENCE * 3) -> Gate:
    """Return a gate whose only slot is taken."""
    gate = Gate(1, max_queue=max_queue, max_wait=max_wait)
    gate.inflight = 1
    return gate


def free(gate: Gate) -> None:
    """Give that slot back."""
    gate.exit(None, 0.0)  # type: ignore[arg-type]


async def body_of(receive) -> list[Message]:
    """Read what an app reads: to the end of the body, or of the client."""
    messages: list[Message] = []
    while not messages or messages[-1].get("more_body", False):
        messages.append(await receive())
    return messages


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


EVENTS = ("grant", "expire", "disconnect", "cancel", "drain", "deadline")


@settings(max_examples=120)
@given(
    order=st.lists(st.sampled_from(EVENTS), min_size=1, max_size=4, unique=True),
    gaps=st.lists(st.integers(0, 2), min_size=4, max_size=4),
    loop=st.sampled_from(["asyncio", "uvloop"]),
)
def test_whatever_ends_a_wait_in_whatever_order_no_slot_is_lost(order, gaps, loop):
    """In the same tick, or a tick or two apart: the handler runs with a slot or not at all."""

    async def main():
        gate = full()
        ran = []

        async def app(scope, receive, send):
            ran.append(gate.inflight)
            assert gate.inflight == 1
            await hello(scope, receive, send)

        guard = Guard(app, gate)
        exchange = Exchange()
        task = exchange.start(guard)
        await until(lambda: gate.queued == 1)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        (ticket,) = gate._queue
        granted = False
        for event, gap in zip(order, gaps, strict=False):
            if event == "grant":
                free(gate)
                granted = True
            elif event == "expire":
                gate.expire(ticket, ticket.expires)
            elif event == "deadline":
                gate.expire(ticket, ticket.expires - 1.0)
            elif event == "disconnect":
                exchange.gone.set()
            elif event == "cancel":
                task.cancel()
            else:
                gate.drain()
            for _ in range(gap):
                await asyncio.sleep(0)
        exchange.gone.set()
        await asyncio.wait([task])
        if not granted:
            free(gate)
        assert (gate.inflight, gate.queued) == (0, 0)
        assert gate.admitted == len(ran) <= 1
        assert task.cancelled() or task.exception() is None
        if ran:
            assert granted
            assert exchange.status == 200 or task.cancelled()
        assert sum(gate.refused.values()) <= 1

    run(main(), loop)


def test_a_client_that_left_gets_no_answer():
    """Also when its time was up in the same moment: servers may take a late send ill."""

    async def main():
        gate = full()
        guard = Guard(hello, gate)
        exchange = Exchange()
        task = exchange.start(guard)
        await until(lambda: gate.queued == 1)
        await asyncio.sleep(0)
        (ticket,) = gate._queue
        exchange.gone.set()
        await asyncio.sleep(0)
        gate.expire(ticket, ticket.expires)
        await task
        assert exchange.sent == []
        assert gate.inflight == 1

    run(main())


def test_a_client_that_left_before_it_had_to_wait_is_noticed():
    """The first look at the connection tells."""

    async def main():
        gate = full()
        exchange = Exchange(scope(), [DISCONNECT])
        await exchange.through(Guard(hello, gate))
        assert (exchange.sent, gate.queued, gate.admitted) == ([], 0, 0)

    run(main())


def test_a_ticket_settled_before_anybody_waits_does_not_hang():
    """A drain may come between the decision and the wait, from a signal handler."""

    async def main():
        for settle in (Ticket.grant, Ticket.abandon):
            ticket = Ticket(0.0, time.monotonic() + PATIENCE)
            settle(ticket)
            gate = Gate(1)
            await asyncio.wait_for(wait_for(ticket, gate, ReadAhead(Exchange().receive)), 1.0)

    run(main())


def test_a_ticket_that_has_expired_already_is_refused_at_once():
    """No patience is no wait."""

    async def main():
        gate = full(max_wait=0.0)
        exchange = await call(Guard(hello, gate))
        assert exchange.status == 503
        assert gate.refused == {"queue_timeout": 1}

    run(main())


def test_the_deadline_ends_the_wait_if_it_is_nearer():
    """504 then, not 503 when the queue's own patience is over."""

    async def main():
        gate = full()
        guard = Guard(hello, DeadlinePolicy(0.05, receive_timeout=0.0), gate)
        exchange = await call(guard)
        assert (exchange.status, exchange.text) == (504, b"Gateway Timeout")
        assert guard.snapshot().refused == {"deadline": 1}
        assert gate.queued == 0
        guard.close()

    run(main())


def test_the_outer_deadline_ends_a_wait_further_in():
    """An inner guard knows it, though it has none of its own."""

    async def main():
        gate = full()
        inner = Guard(hello, gate)

        async def between(scope, receive, send):
            await inner(dict(scope), receive, send)

        guard = Guard(between, DeadlinePolicy(0.05, receive_timeout=0.0))
        exchange = await call(guard)
        assert exchange.status == 504
        assert (gate.queued, gate.inflight) == (0, 1)
        guard.close()

    run(main())


def test_a_policy_further_in_that_raises_after_the_wait_frees_the_slot():
    """What was granted is given back, and what was read ahead is dropped."""

    class Broken(Policy):
        def enter(self, exchange):
            raise ValueError("broken")

    async def main():
        gate = full()
        guard = Guard(hello, gate, Broken())
        exchange = Exchange()
        task = exchange.start(guard)
        await until(lambda: gate.queued == 1)
        free(gate)
        with pytest.raises(ValueError, match="broken"):
            await task
        assert gate.inflight == 0

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


def test_the_queue_is_served_in_order_at_full_speed():
    """Hundreds of waiters, each granted by the end of the one before."""

    async def main():
        order = []

        async def app(scope, receive, send):
            order.append(int(scope["path"][1:]))
            await asyncio.sleep(0)
            await hello(scope, receive, send)

        gate = Gate(2, max_queue=300, max_wait=PATIENCE)
        guard = Guard(app, gate)
        exchanges = await asyncio.gather(*(call(guard, f"/{number}") for number in range(300)))
        assert all(exchange.status == 200 for exchange in exchanges)
        assert order == list(range(300))
        assert (gate.inflight, gate.admitted) == (0, 300)

    run(main())


def test_holding_apps_are_entered_only_with_a_slot():
    """Cancelling everybody in any state leaves an empty gate."""

    async def main():
        holding = Holding()
        gate = Gate(3, max_queue=10, max_wait=PATIENCE)
        guard = Guard(holding, gate)
        tasks = [Exchange().start(guard) for _ in range(13)]
        await until(lambda: gate.queued == 10)
        for task in reversed(tasks):
            task.cancel()
        await asyncio.wait(tasks)
        assert (gate.inflight, gate.queued, holding.entered) == (0, 0, 3)

    run(main())
