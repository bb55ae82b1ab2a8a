"""What a guard senses of the loop it runs in."""

from __future__ import annotations

import asyncio
import socket
import time

import pytest

from resilience_mw.asgi import BackpressureMiddleware, Guard
from resilience_mw.asgi.senses import LoopSenses
from resilience_mw.core import AIMD, AdaptiveGate, DeadlinePolicy, Exchange, Gate, Policy

from .harness import PATIENCE, call, hello, run, until


def adaptive() -> AdaptiveGate:
    """Return a gate that needs senses."""
    return AdaptiveGate(AIMD(window=0.01))


@pytest.mark.parametrize(("loop", "source"), [("asyncio", "select"), ("uvloop", "uv")])
def test_an_adaptive_gate_is_told_of_its_loop(loop, source):
    """How busy it is, by the best meter there is."""

    async def main():
        gate = adaptive()
        guard = Guard(hello, gate)
        for _ in range(3):
            await call(guard)
            time.sleep(0.02)  # noqa: ASYNC251 - a busy loop is what is measured
        await call(guard)
        assert guard.snapshot().sources["utilization"] == source
        elu = gate.snapshot().elu
        assert elu is not None
        assert 0.0 < elu <= 1.0
        guard.close()
        assert "utilization" not in guard.snapshot().sources

    run(main(), loop)


def test_a_fixed_gate_senses_nothing():
    """And so costs nothing."""

    async def main():
        guard = Guard(hello, Gate(1))
        await call(guard)
        assert guard.snapshot().sources == {}

    run(main())


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_request_knows_how_long_it_has_waited(loop):
    """Measured when a policy asks, and then once."""
    asked = []

    class Asking(Policy):
        def enter(self, exchange: Exchange):
            asked.append(exchange.waited(exchange.arrived))
            asked.append(exchange.waited(exchange.arrived))

    async def main():
        guard = Guard(hello, DeadlinePolicy(PATIENCE), adaptive(), Asking())
        calls = [asyncio.create_task(call(guard)) for _ in range(3)]
        time.sleep(0.03)  # noqa: ASYNC251 - the tasks wait for the loop meanwhile
        await asyncio.gather(*calls)
        assert all(waited >= 0.0 for waited in asked)
        assert asked[0::2] == pytest.approx(asked[1::2])
        assert guard.snapshot().sources["waited"] in ("turn", "lag")
        guard.close()

    run(main(), loop)


def test_the_peer_is_who_is_connected():
    """By the scope where the socket cannot be reached; nobody if the server does not say."""
    peers = []

    class Asking(Policy):
        def enter(self, exchange: Exchange):
            peers.append(exchange.peer)

    async def main():
        guard = Guard(hello, Asking())
        await call(guard)
        await call(guard, client=None)

    run(main())
    assert peers == ["127.0.0.1", None]


def test_listening_sockets_are_found_and_let_go():
    """Those of the server that the request came through."""

    async def main():
        with socket.create_server(("127.0.0.1", 0)) as listener:
            guard = BackpressureMiddleware(hello)
            await until(lambda: True)
            await call(guard, server=listener.getsockname())
            await call(guard, server=None)
            assert guard.snapshot().limit is not None
            guard.close()

    run(main())


def test_senses_that_are_attached_to_nothing_read_as_idle():
    """Whoever reads before the first request, or after the last."""
    senses = LoopSenses([adaptive()])
    assert senses._sense(5.0) == (5.0, 0.0, 0, 0)
    assert senses._backlog() == 0
    senses.detach()
    assert senses.sources() == {}
