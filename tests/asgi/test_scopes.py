"""What is no HTTP request, and what the lifespan scope tells."""

from __future__ import annotations

import asyncio

import pytest

from resilience_mw.asgi import Guard
from resilience_mw.core import DeadlinePolicy, Gate, HealthPolicy, State

from .harness import Exchange, call, hello, run, scope, until


def test_a_websocket_passes_and_holds_no_slot():
    """It lives for minutes; it is counted by itself."""

    async def app(scope, receive, send):
        if scope["type"] == "http":
            await hello(scope, receive, send)
            return
        while (await receive())["type"] != "websocket.disconnect":
            await send({"type": "websocket.accept"})

    async def main():
        gate = Gate(1)
        guard = Guard(app, HealthPolicy(), DeadlinePolicy(0.001), gate)
        connect = {"type": "websocket.connect"}
        sockets = [Exchange(scope("/livez", type="websocket"), [connect]) for _ in range(3)]
        tasks = [guard(socket.scope, _receive(socket), socket.send) for socket in sockets]
        served = asyncio.gather(*tasks)
        await until(lambda: all(socket.sent for socket in sockets))
        assert (guard.websockets, guard.snapshot().websockets, gate.inflight) == (3, 3, 0)
        assert (await call(guard)).status == 200
        for socket in sockets:
            socket.gone.set()
        await served
        assert guard.websockets == 0
        assert [socket.sent for socket in sockets] == [[{"type": "websocket.accept"}]] * 3

    run(main())


def _receive(socket):
    messages = iter(socket.body)

    async def receive():
        message = next(messages, None)
        if message is not None:
            return message
        await socket.gone.wait()
        return {"type": "websocket.disconnect"}

    return receive


def test_a_websocket_that_fails_is_no_longer_counted():
    """However it ends."""

    async def app(scope, receive, send):
        raise OSError("gone")

    async def main():
        guard = Guard(app, Gate(1))
        with pytest.raises(OSError, match="gone"):
            await call(guard, type="websocket")
        assert guard.websockets == 0

    run(main())


def test_an_unknown_scope_passes():
    """ASGI may bring more than we know."""
    seen = []

    async def app(scope, receive, send):
        seen.append(scope["type"])

    async def main():
        guard = Guard(app, HealthPolicy(), DeadlinePolicy(), Gate(0))
        await call(guard, type="webtransport")
        assert (seen, guard.websockets) == (["webtransport"], 0)

    run(main())


def lifespan(*events):
    """Return an app that answers the lifespan scope with these events, each when it is asked."""

    async def app(scope, receive, send):
        if scope["type"] == "http":
            await hello(scope, receive, send)
            return
        for event in events:
            await receive()
            await send({"type": event})

    return app


class Server:
    """Runs the lifespan of an app, step by step."""

    def __init__(self, app) -> None:
        self.asks: asyncio.Queue[dict[str, str]] = asyncio.Queue()
        self.told: asyncio.Queue[dict[str, str]] = asyncio.Queue()
        self.task = asyncio.ensure_future(
            app({"type": "lifespan", "state": {}}, self.asks.get, self.told.put)
        )

    async def startup(self) -> str:
        """Ask the app to start, and return its answer."""
        await self.asks.put({"type": "lifespan.startup"})
        return (await self.told.get())["type"]

    async def shutdown(self) -> str:
        """Ask the app to stop, and return its answer."""
        await self.asks.put({"type": "lifespan.shutdown"})
        answer = (await self.told.get())["type"]
        await self.task
        return answer


async def readiness(guard) -> tuple[int | None, int | None]:
    """Return the answers to the readiness and the start-up probe."""
    return (await call(guard, "/readyz")).status, (await call(guard, "/startupz")).status


WELL = ("lifespan.startup.complete", "lifespan.shutdown.complete")


def test_readiness_follows_the_lifespan():
    """Starting until the app has started; not ready again when it is told to stop."""

    async def main():
        health = HealthPolicy()
        guard = Guard(lifespan(*WELL), health)
        server = Server(guard)
        await asyncio.sleep(0)
        assert await readiness(guard) == (503, 503)
        assert await server.startup() == "lifespan.startup.complete"
        assert await readiness(guard) == (200, 200)
        assert await server.shutdown() == "lifespan.shutdown.complete"
        assert health.lifecycle.state is State.STOPPED
        assert await readiness(guard) == (503, 200)

    run(main())


def test_an_app_may_be_started_again():
    """Test clients start and stop the same app for each test."""

    async def main():
        guard = Guard(lifespan(*WELL), HealthPolicy())
        for _ in range(3):
            server = Server(guard)
            await server.startup()
            assert await readiness(guard) == (200, 200)
            await server.shutdown()
            assert await readiness(guard) == (503, 200)

    run(main())


def test_a_drained_app_does_not_become_ready_by_starting():
    """The signal may come while the app still starts."""

    async def main():
        guard = Guard(lifespan(*WELL), HealthPolicy())
        server = Server(guard)
        guard.drain()
        await server.startup()
        assert (await call(guard, "/readyz")).status == 503
        await server.shutdown()

    run(main())


def test_an_app_that_fails_to_start_is_not_ready():
    """The server will give up; until then nobody is sent here."""

    async def main():
        guard = Guard(lifespan("lifespan.startup.failed"), HealthPolicy())
        assert await Server(guard).startup() == "lifespan.startup.failed"
        assert await readiness(guard) == (503, 503)

    run(main())


async def raises(scope, receive, send):
    """An app that knows no lifespan, and says so."""
    if scope["type"] != "http":
        raise NotImplementedError
    await hello(scope, receive, send)


async def returns(scope, receive, send):
    """An app that knows no lifespan, and says nothing."""
    if scope["type"] == "http":
        await hello(scope, receive, send)


@pytest.mark.parametrize("app", [raises, returns])
def test_an_app_without_lifespan_is_ready_at_the_first_request(app):
    """Servers go on without it."""

    async def main():
        guard = Guard(app, HealthPolicy())
        server = Server(guard)
        await asyncio.wait([server.task])
        assert (server.task.exception() is None) is (app is returns)
        assert await readiness(guard) == (200, 200)

    run(main())


@pytest.mark.parametrize("policies", [[], [DeadlinePolicy()]], ids=["health", "with deadlines"])
def test_a_server_without_lifespan_is_ready_at_the_first_request(policies):
    """A test client without its context manager, or a server told not to."""
    health = HealthPolicy()
    guard = Guard(hello, health, *policies)
    assert health.lifecycle.state is State.STARTING
    assert run(readiness(guard)) == (200, 200)


def test_draining_after_the_lifespan_is_harmless():
    """Whatever comes late."""

    async def main():
        health = HealthPolicy()
        guard = Guard(lifespan(*WELL), health)
        server = Server(guard)
        await server.startup()
        await server.shutdown()
        guard.drain()
        assert health.lifecycle.state is State.STOPPED

    run(main())
