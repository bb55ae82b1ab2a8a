"""One guard, several loops and processes; and what a request leaves behind."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import weakref

import pytest

from resilience_mw.asgi import Guard
from resilience_mw.asgi.exchange import ASGIExchange
from resilience_mw.asgi.pulse import PERIOD, Pulse
from resilience_mw.core import AIMD, AdaptiveGate, DeadlinePolicy, Gate, HealthPolicy, Policy
from resilience_mw.signals.lag import Lag

from .harness import LOOPS, Exchange, Holding, call, hello, run, until

SOON = 0.04


def build(app=hello, timeout=SOON):
    """Return a guard with everything, and its gates."""
    adaptive, fixed = AdaptiveGate(AIMD(window=0.01)), Gate(2, max_queue=2, max_wait=5.0)
    deadline = DeadlinePolicy(timeout, receive_timeout=timeout)
    return Guard(app, HealthPolicy(), deadline, fixed, adaptive), fixed, adaptive


@pytest.mark.parametrize("close", [True, False], ids=["closed", "left"])
@pytest.mark.parametrize("order", [["asyncio"] * 4, ["asyncio", "uvloop", "asyncio", "uvloop"]])
def test_a_guard_outlives_its_loops(order, close):
    """On each new loop it ticks, measures and enforces anew."""
    holding = Holding()

    async def app(scope, receive, send):
        if scope["path"] == "/slow":
            await holding(scope, receive, send)
        await hello(scope, receive, send)

    guard, fixed, adaptive = build(app)

    async def main():
        holding.go = asyncio.Event()
        assert (await call(guard)).status == 200
        assert (await call(guard, "/slow")).status == 504
        assert (fixed.inflight, adaptive.inflight) == (0, 0)
        await asyncio.sleep(PERIOD * 2)
        assert adaptive.snapshot().elu is not None
        if close:
            guard.close()

    for loop in order:
        run(main(), loop)
    assert guard.snapshot().refused == {"deadline": len(order)}


def test_a_loop_that_dies_with_waiters_gives_their_slots_back():
    """Whoever waited on it is forgotten; the next loop finds every slot free."""
    holding = Holding()
    gate = Gate(1, max_queue=5, max_wait=60.0)
    guard = Guard(holding, gate)

    async def crowd():
        tasks = [Exchange().start(guard) for _ in range(4)]
        await until(lambda: gate.queued == 3)
        return tasks

    with asyncio.Runner() as runner:
        runner.run(crowd())
    assert (gate.inflight, gate.queued) == (0, 0)
    holding.go = asyncio.Event()
    holding.go.set()
    assert run(call(guard)).status == 200


def test_a_loop_that_is_closed_under_its_waiters_gives_their_slots_back():
    """Nobody cancelled them: they end when they are collected, at the latest."""
    holding = Holding()
    gate = Gate(1, max_queue=5, max_wait=60.0)
    guard = Guard(holding, gate)

    async def crowd():
        for _ in range(4):
            Exchange().start(guard)
        await until(lambda: gate.queued == 3)
        await asyncio.sleep(0.01)

    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda loop, context: None)
    loop.run_until_complete(crowd())
    loop.close()
    holding.go = asyncio.Event()  # the old one holds who waited for it
    for _ in range(5):  # each grant wakes nobody, until the next collection
        gc.collect()
    assert (gate.inflight, gate.queued) == (0, 0)
    holding.go.set()
    assert run(call(guard)).status == 200


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
def test_a_guard_built_before_a_fork_works_in_both_processes():
    """Nothing that belongs to a loop or a thread is made before the first request."""
    guard, fixed, _ = build(timeout=10.0)

    async def serve():
        answers = [await call(guard, path) for path in ("/", "/readyz", "/")]
        guard.close()
        return [answer.status for answer in answers]

    child = os.fork()
    if child == 0:
        code = 1
        try:
            asyncio.set_event_loop(None)
            code = 0 if run(serve()) == [200] * 3 and fixed.admitted == 2 else 2
        finally:
            os._exit(code)
    assert run(serve()) == [200] * 3
    assert fixed.admitted == 2
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("kind", ["plain", "live"])
def test_a_finished_request_is_freed_at_once(kind):
    """Without the cyclic collector: it may hold a large body, and a busy server many of them."""

    async def main():
        row: list[Policy] = [Gate(1)]
        if kind == "live":
            row += [DeadlinePolicy(10.0), AdaptiveGate(AIMD())]
        guard = Guard(hello, *row)
        await call(guard)
        gc.collect()
        before = sum(type(thing) is ASGIExchange for thing in gc.get_objects())
        gc.disable()
        try:
            exchange = Exchange()
            token = weakref.ref(exchange)
            await exchange.through(guard)
            del exchange
            assert token() is None
            assert sum(type(thing) is ASGIExchange for thing in gc.get_objects()) == before
        finally:
            gc.enable()
        guard.close()

    run(main())


def test_a_scope_is_handed_back_as_it_was():
    """Whoever is further out may look at it afterwards, or use it again."""

    async def main():
        guard, _, _ = build()
        exchange = Exchange()
        before = set(exchange.scope)
        await exchange.through(guard)
        assert set(exchange.scope) == before
        guard.close()

    run(main())


def test_an_idle_guard_stops_ticking_and_wakes_again():
    """A worker without requests does not wake forty times a second."""

    async def main():
        beats: list[float] = []

        def beat(now: float) -> bool:
            beats.append(now)
            return len(beats) < 3

        pulse = Pulse(beat, Lag(PERIOD))
        pulse.start(asyncio.get_running_loop())
        await until(lambda: len(beats) > 3)
        pulse._worked_at -= 10.0
        await until(lambda: pulse.resting)
        count = len(beats)
        await asyncio.sleep(PERIOD * 3)
        assert len(beats) == count
        pulse.start(asyncio.get_running_loop())
        await until(lambda: len(beats) > count)
        pulse.stop()
        pulse.stop()
        assert pulse.resting

    run(main())


def test_a_policy_whose_tick_fails_does_not_stop_the_others():
    """Deadlines are enforced all the same."""

    class Broken(Policy):
        def enter(self, exchange):
            return None

        def tick(self, now):
            raise ValueError("broken")

    async def main():
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        guard = Guard(Holding(), Broken(), DeadlinePolicy(SOON))
        for _ in range(2):
            assert (await call(guard)).status == 504
        guard.close()

    run(main())


def test_closing_twice_and_from_another_thread_is_harmless():
    """A runner may do it late, and from where it is."""

    async def main():
        guard, _, _ = build()
        await call(guard)
        await asyncio.to_thread(guard.close)
        guard.close()
        assert (await call(guard)).status == 200
        guard.close()

    run(main())


def test_closing_does_not_forget_who_is_running():
    """The next request brings the tick back, and with it their deadlines."""

    async def main():
        guard = Guard(Holding(), DeadlinePolicy(0.2))
        exchange = Exchange()
        task = exchange.start(guard)
        await until(lambda: guard._running)
        guard.close()
        guard.app = hello
        assert (await call(guard)).status == 200
        await task
        assert exchange.status == 504
        guard.close()

    run(main())


def test_closing_restores_the_loop():
    """What was measured is not measured any more."""

    async def main():
        loop = asyncio.get_running_loop()
        before = getattr(loop, "_selector", None)
        select = getattr(before, "select", None)
        guard, _, _ = build()
        await call(guard)
        guard.close()
        assert getattr(getattr(loop, "_selector", None), "select", None) == select

    for loop in LOOPS:
        run(main(), loop)


def test_draining_from_another_thread_wakes_who_waits():
    """At once, though nothing else happens on the loop: on it who waits is refused."""

    async def main():
        holding = Holding()
        gate = Gate(1, max_queue=50, max_wait=60.0)
        guard = Guard(holding, HealthPolicy(), gate)
        exchanges = [Exchange() for _ in range(51)]
        tasks = [exchange.start(guard) for exchange in exchanges]
        await until(lambda: gate.queued == 50)
        drainer = threading.Timer(0.05, guard.drain)
        drainer.start()
        await asyncio.wait(tasks, timeout=5.0, return_when=asyncio.FIRST_COMPLETED)
        assert any(task.done() for task in tasks)
        await asyncio.to_thread(drainer.join)
        await until(lambda: sum(task.done() for task in tasks) == 50)
        holding.go.set()
        await asyncio.gather(*tasks)
        statuses = [exchange.status for exchange in exchanges]
        assert (statuses.count(200), statuses.count(503)) == (1, 50)
        assert (gate.inflight, gate.queued) == (0, 0)
        guard.close()

    run(main())


def test_draining_from_another_thread_happens_in_the_loop():
    """Readiness turns at once; a queue is only touched by the loop that owns it."""

    async def main():
        touched = []

        class Noting(Gate):
            def drain(self):
                touched.append(asyncio.get_running_loop())
                super().drain()

        gate = Noting(1, max_queue=1, max_wait=20.0)
        holding = Holding()
        health = HealthPolicy()
        guard = Guard(holding, health, gate, DeadlinePolicy(20.0))
        first = Exchange().start(guard)
        await until(lambda: gate.inflight == 1)
        second = asyncio.ensure_future(call(guard))
        await until(lambda: gate.queued == 1)
        loop = asyncio.get_running_loop()
        thread = threading.Thread(target=guard.drain)
        thread.start()
        thread.join()
        assert not health.lifecycle.ready
        assert (await second).status == 503
        assert touched == [loop]
        first.cancel()
        await asyncio.wait([first])
        guard.close()

    run(main())
