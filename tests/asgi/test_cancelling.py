"""Cancelled, closed or thrown at, at every single await."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from resilience_mw.asgi import Guard
from resilience_mw.core import AIMD, AdaptiveGate, DeadlinePolicy, Gate, Policy

from .harness import Exchange, run, until


def part(body: bytes, more: bool) -> dict[str, Any]:
    """Return a part of a body."""
    return {"type": "http.request", "body": body, "more_body": more}


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Read and answer, giving way wherever an app may."""
    more = True
    while more:
        more = (await receive()).get("more_body", False)
        await asyncio.sleep(0)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(2):
        await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": b"x", "more_body": True})
    await send({"type": "http.response.body"})
    await asyncio.sleep(0)


def build(kind: str) -> tuple[Guard, list[Gate]]:
    """Return a guard and its gates."""
    gates: list[Gate] = [Gate(1, max_queue=3, max_wait=60.0, name="outer")]
    row: list[Policy] = [*gates]
    if kind == "live":
        gates.append(AdaptiveGate(AIMD(initial_limit=1, max_limit=1)))
        row = [DeadlinePolicy(60.0), *gates]
    return Guard(app, *row), gates


class Slow(Exchange):
    """A connection on which everything takes a turn of the loop."""

    async def receive(self):
        await asyncio.sleep(0)
        return await super().receive()

    async def send(self, message):
        await asyncio.sleep(0)
        await super().send(message)


@pytest.mark.parametrize("kind", ["plain", "live"])
@pytest.mark.parametrize("queued", [False, True], ids=["at once", "from the queue"])
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_request_may_be_cancelled_at_any_turn_of_the_loop(kind, queued, loop):
    """Before, while and after it waits, reads, runs and answers: every slot comes back."""

    async def main():
        guard, gates = build(kind)
        ended_by_itself = turns = 0
        while ended_by_itself < 3:
            first = Slow(body=[part(b"a", True), part(b"b", False)])
            tasks = [first.start(guard)] if queued else []
            for _ in range(2):
                await asyncio.sleep(0)
            second = Slow(body=[part(b"a", True), part(b"b", False)]).start(guard)
            for _ in range(turns):
                await asyncio.sleep(0)
            cancelled = second.cancel()
            await asyncio.wait([second, *tasks])
            assert second.cancelled() is cancelled
            ended_by_itself += not cancelled
            for gate in gates:
                assert (gate.inflight, gate.queued) == (0, 0), turns
            assert guard._running == set()
            turns += 1
        assert turns > 10
        guard.close()

    run(main(), loop)


@pytest.mark.parametrize("error", [GeneratorExit, SystemExit, KeyboardInterrupt, ValueError])
def test_whatever_is_thrown_at_any_await_gives_the_slot_back(error):
    """On servers that drive coroutines themselves, without a loop or a task."""

    class Turn:
        def __await__(self):
            yield

    async def stepping(scope, receive, send):
        for _ in range(4):
            await Turn()

    gate = Gate(1)
    guard = Guard(stepping, gate)
    for steps in range(5):
        exchange = Exchange()
        coroutine = guard(exchange.scope, exchange.receive, exchange.send)
        for _ in range(steps):
            coroutine.send(None)
        assert gate.inflight == (steps > 0)
        if error is GeneratorExit:
            coroutine.close()
        else:
            with pytest.raises(error):
                coroutine.throw(error())
        assert gate.inflight == 0
    assert gate.admitted == 4


@pytest.mark.parametrize("kind", ["plain", "live"])
def test_a_guard_without_a_loop_still_counts(kind):
    """Nobody enforces deadlines there, but nothing breaks either."""
    guard, gates = build(kind)

    async def quick(scope, receive, send):
        assert all(gate.inflight == 1 for gate in gates)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body"})

    guard.app = quick
    sent: list[Any] = []

    async def send(message):
        sent.append(message["type"])

    coroutine = guard({"type": "http", "method": "GET", "path": "/", "headers": []}, None, send)  # type: ignore[arg-type]
    with pytest.raises(StopIteration):
        coroutine.send(None)
    assert sent == ["http.response.start", "http.response.body"]
    assert all(gate.inflight == 0 and gate.admitted == 1 for gate in gates)


def test_everybody_cancelled_in_one_turn_leaves_nothing():
    """Running, waiting, and granted but not yet awake."""

    async def main():
        guard, gates = build("live")
        gates[0].limit, gates[0]._max_queue = 2, 50
        tasks = [Exchange().start(guard) for _ in range(40)]
        await until(lambda: gates[0].queued > 10)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for gate in gates:
            assert (gate.inflight, gate.queued) == (0, 0)
        guard.close()

    run(main())
