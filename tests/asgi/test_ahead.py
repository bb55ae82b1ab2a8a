"""What a guard can answer before there is a task, and what it leaves to `enter`."""

from __future__ import annotations

import asyncio
import time

import pytest

from resilience_mw.asgi import Guard
from resilience_mw.core import AIMD, SKIP, AdaptiveGate, DeadlinePolicy, Gate, HealthPolicy, Policy
from resilience_mw.core.policy import answers_ahead
from resilience_mw.signals.waited import ARRIVED

from .harness import Holding, call, hello, run, scope, until


async def send(message):
    """Never called."""
    raise AssertionError(message)


def ask(guard, path="/", **more):
    return guard.ahead(scope(path, **more), send)


class Strict(Gate):
    """A gate that decides in its own way."""

    def enter(self, exchange):
        return None


class Aside(Policy):
    """Lets everybody pass; a policy further in must not be asked before it."""

    def enter(self, exchange):
        return SKIP


def test_a_probe_is_answered():
    """Without a task, and counted once."""
    health = HealthPolicy()
    guard = Guard(hello, health)
    assert ask(guard, "/livez").status == 200
    assert ask(guard, "/readyz").status == 503
    assert ask(guard, "/livez", method="POST").status == 405
    assert ask(guard, "/page") is None
    assert health.snapshot().probes == 2


def test_a_full_gate_refuses():
    """A fixed limit refuses ahead exactly when `enter` would, and counts it."""

    async def main():
        holding = Holding()
        gate = Gate(1, exempt=("/static",), only=("/static", "/page"))
        guard = Guard(holding, gate)
        assert ask(guard, "/page") is None
        assert gate.inflight == 0
        running = asyncio.create_task(call(guard, "/page"))
        await until(lambda: gate.inflight == 1)
        reply = ask(guard, "/page")
        assert (reply.status, reply.reason) == (503, "limit")
        assert ask(guard, "/static/logo") is None
        assert ask(guard, "/other") is None
        assert gate.refused == {"limit": 1}
        holding.go.set()
        await running
        assert ask(guard, "/page") is None

    run(main())


def test_a_place_in_the_queue_is_left_to_enter():
    """Who may wait is not refused ahead; who finds the queue full is."""
    gate = Gate(0, max_queue=1, max_wait=1.0)
    guard = Guard(hello, gate)
    assert ask(guard) is None
    gate._queue.append(object())  # type: ignore[arg-type]
    assert ask(guard).reason == "queue_full"


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_saturated_gate_refuses_what_finds_no_slot(loop):
    """While its law says so, and only while the guard knows the loop."""

    async def main():
        holding = Holding()
        law = AIMD(initial_limit=1, max_limit=1, window=1000.0)
        gate = AdaptiveGate(law, exempt=("/health",))
        guard = Guard(holding, DeadlinePolicy(None, receive_timeout=0), gate)
        law.saturated = True
        assert ask(guard) is None, "nothing has run yet"
        running = asyncio.create_task(call(guard))
        await until(lambda: gate.inflight == 1)
        assert ask(guard).reason == "saturated"
        assert ask(guard, "/health") is None
        law.saturated = False
        assert ask(guard) is None
        assert gate.refused == {"saturated": 1}
        holding.go.set()
        await running
        guard.close()

    run(main(), loop)


def test_a_request_that_waited_too_long_is_refused():
    """By the law, from the stamp of the server's protocol."""

    async def main():
        holding = Holding()
        law = AIMD(initial_limit=5, max_limit=5, window=1000.0)
        law.saturated = law.alert = True
        law.refuses = lambda waited, backlog: "waited" if waited > 1.0 else None  # type: ignore[method-assign]
        gate = AdaptiveGate(law)
        guard = Guard(holding, gate)
        running = asyncio.create_task(call(guard, "/", **{ARRIVED: time.monotonic()}))
        await until(lambda: gate.inflight == 1)
        assert ask(guard, **{ARRIVED: 1e-9}).reason == "waited"
        holding.go.set()
        await running
        guard.close()

    run(main())


def test_nobody_is_asked_behind_a_policy_that_cannot_answer():
    """It might have let the request pass the rest."""
    gate = Gate(0)
    assert ask(Guard(hello, gate)).reason == "limit"
    assert ask(Guard(hello, Aside(), Gate(0))) is None
    assert ask(Guard(hello, Strict(0))) is None


def test_who_answers_ahead():
    """A subclass with an `enter` of its own does not inherit the `ahead` of another."""
    assert answers_ahead(Gate(1))
    assert answers_ahead(AdaptiveGate(AIMD()))
    assert answers_ahead(HealthPolicy())
    assert not answers_ahead(Strict(1))
    assert not answers_ahead(Aside())
