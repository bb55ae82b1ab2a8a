"""Waiting in a queue on an event loop: how it ends, and every race."""

from __future__ import annotations

import asyncio
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resilience_mw.asgi import Guard
from resilience_mw.asgi.waiting import ReadAhead, wait_for
from resilience_mw.core import DeadlinePolicy, Gate, Policy, Ticket

from .harness import PATIENCE, Exchange, Holding, call, hello, run, scope, until
from .queueing import DISCONNECT, free, full

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
