"""What a guard senses of the loop it runs in."""

from __future__ import annotations

import asyncio
import socket
import time

import pytest

from resilience_mw.asgi import Guard
from resilience_mw.asgi.senses import LoopSenses
from resilience_mw.core import AIMD, AdaptiveGate, DeadlinePolicy, Exchange, Gate, Policy
from resilience_mw.signals.tcp import accept_queue

from .harness import PATIENCE, call, hello, run, until


def has_accept_queue() -> bool:
    """Whether the depth of an accept queue can be read here."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return accept_queue(listener.fileno()) is not None


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


@pytest.mark.skipif(not has_accept_queue(), reason="the platform does not tell")
def test_the_accept_queue_of_the_server_is_found_and_let_go():
    """By the port that the request came to; what was opened for it is closed again."""

    class Asking(Policy):
        def enter(self, exchange: Exchange):
            exchange.waited(exchange.arrived)

    async def main():
        with socket.create_server(("127.0.0.1", 0)) as listener:
            guard = Guard(hello, adaptive(), Asking())
            await call(guard, server=listener.getsockname())
            senses = guard._upkeep.senses
            assert guard.snapshot().sources["backlog"] == "tcp"
            assert senses._backlog() == 0
            with socket.create_connection(listener.getsockname()):
                await until(lambda: senses._backlog() == 1)
            guard.close()
            assert senses._backlog() == 0

    run(main())


def test_a_response_that_goes_on_for_long_becomes_a_stream(monkeypatch):
    """It keeps its slot, but is no work any more to a law that observes responses."""
    monkeypatch.setattr("resilience_mw.asgi.upkeep.STREAM_AFTER", 0.05)

    async def main():
        go = asyncio.Event()

        async def app(scope, receive, send):
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await go.wait()
            await send({"type": "http.response.body"})

        law = AIMD(window=0.01)
        law.observes = True
        gate = AdaptiveGate(law)
        guard = Guard(app, gate)
        task = asyncio.create_task(call(guard))
        await until(lambda: gate.snapshot().streams == 1)
        assert gate.inflight == 1
        go.set()
        await task
        assert (gate.inflight, gate.snapshot().streams) == (0, 0)
        guard.close()

    run(main())


def test_senses_that_are_attached_to_nothing_read_as_idle():
    """Whoever reads before the first request, or after the last."""
    senses = LoopSenses([adaptive()])
    assert senses._sense(5.0) == (5.0, 0.0, 0, 0)
    assert senses._backlog() == 0
    senses.detach()
    assert senses.sources() == {}
