"""How a request through the ASGI proxy ends: by whom, when, and what is left of it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import psutil
import pytest

from resilience_mw.asgi import DeadlineMiddleware
from resilience_mw.rollout.proxy.asgi import proxy
from resilience_mw.rollout.proxy.asgi_proxy import ASGIProxy
from tests.asgi.harness import Exchange, run, scope, until

from .asking import LOOPS, eventually, through


@pytest.mark.parametrize("path", ["/hang", "/drip"])
def test_a_client_that_leaves_ends_the_upstream_call(upstream, seen, path):
    """Before the response has begun, and in the middle of it."""
    before = seen(f"left {path}"), seen(f"entered {path}")

    async def main(app: ASGIProxy) -> None:
        exchange = Exchange(scope(path))
        call = exchange.start(app)
        await eventually(lambda: seen(f"entered {path}") > before[1])
        if path == "/drip":
            await until(lambda: exchange.text)
        exchange.gone.set()
        await call
        assert len(exchange.starts) == (path == "/drip")
        await eventually(lambda: seen(f"left {path}") > before[0])

    through(upstream.url, main)


def test_a_client_that_leaves_while_it_sends_ends_the_upstream_call(upstream, seen):
    """The upstream must not take a part of a body for the whole."""
    before = seen("left /upload")

    async def main(app: ASGIProxy) -> None:
        part = {"type": "http.request", "body": b"x" * 1000, "more_body": True}
        head = scope("/upload", method="POST", headers=[(b"transfer-encoding", b"chunked")])
        exchange = Exchange(head, [part])
        call = exchange.start(app)
        exchange.gone.set()
        await call
        assert exchange.starts == []
        await eventually(lambda: seen("left /upload") > before)

    through(upstream.url, main)


def test_a_client_that_left_before_costs_the_upstream_nothing(upstream, seen):
    """There is nobody to answer."""
    before = seen("entered /gone")

    async def main(app: ASGIProxy) -> None:
        exchange = Exchange(scope("/gone"), [{"type": "http.disconnect"}])
        await exchange.through(app)
        assert exchange.sent == []

    through(upstream.url, main)
    assert seen("entered /gone") == before


def test_a_client_that_reads_slowly_and_leaves_ends_the_upstream_call(upstream, seen):
    """The call waits in `send` then, and not for the upstream."""
    before = seen("left /drip"), seen("entered /drip")

    async def main(app: ASGIProxy) -> None:
        exchange = Exchange(scope("/drip"), hold_sends=True)
        call = exchange.start(app)
        await eventually(lambda: seen("entered /drip") > before[1])
        exchange.gone.set()
        await call
        await eventually(lambda: seen("left /drip") > before[0])

    through(upstream.url, main)


@pytest.mark.parametrize("loop", LOOPS)
def test_leaving_clients_use_up_no_connections(upstream, loop):
    """Hundreds that leave, or are cancelled, at any moment, through two connections."""

    async def main() -> None:
        app = proxy(upstream.url, max_connections=2)
        assert (await Exchange(scope("/echo")).through(app)).status == 200
        await app.aclose()
        before = psutil.Process().num_fds()
        for turns in range(60):
            exchanges = [Exchange(scope("/hang")) for _ in range(4)]
            calls = [exchange.start(app) for exchange in exchanges]
            for _ in range(turns):
                await asyncio.sleep(0)
            for number, (exchange, call) in enumerate(zip(exchanges, calls, strict=True)):
                if (turns + number) % 3 != 1:
                    exchange.gone.set()
                if (turns + number) % 3 != 0:
                    call.cancel()
            await asyncio.wait(calls)
        assert not app.pools.current().idle
        assert app.pools.current().slots.value == 2
        await until(lambda: psutil.Process().num_fds() <= before)
        assert (await Exchange(scope("/echo")).through(app)).status == 200
        await app.aclose()

    run(main(), loop)


@pytest.mark.parametrize("loop", LOOPS)
def test_the_requests_deadline_holds_across_the_proxy(upstream, seen, loop):
    """It ends the upstream call as well, long before the proxy's own timeout."""
    before = seen("left /hang")

    async def main() -> None:
        inner = proxy(upstream.url, timeout=60)
        app = DeadlineMiddleware(inner, timeout=0.3)
        exchange = await Exchange(scope("/hang")).through(app)
        assert exchange.status == 504
        await eventually(lambda: seen("left /hang") > before)
        app.close()
        await inner.aclose()

    run(main(), loop)


def test_a_full_pool_is_a_refusal(upstream):
    """503 with Retry-After: it says something of us, and nothing of the upstream."""

    async def main(app: ASGIProxy) -> None:
        first = Exchange(scope("/drip"))
        call = first.start(app)
        await until(lambda: first.text)
        second = await Exchange(scope("/echo")).through(app)
        assert (second.status, second.headers[b"retry-after"]) == (503, b"1")
        first.gone.set()
        await call
        assert (await Exchange(scope("/echo")).through(app)).status == 200

    through(upstream.url, main, max_connections=1, connect_timeout=0.1)


def test_a_client_that_leaves_waits_for_no_connection(upstream):
    """Nor does its call."""

    async def main(app: ASGIProxy) -> None:
        first, second = Exchange(scope("/drip")), Exchange(scope("/echo"))
        calls = [first.start(app)]
        await until(lambda: first.text)
        calls.append(second.start(app))
        await asyncio.sleep(0.05)
        second.gone.set()
        await calls[1]
        assert second.sent == []
        first.gone.set()
        await calls[0]

    through(upstream.url, main, max_connections=1, connect_timeout=60)


def test_the_upstream_learns_how_much_time_is_left(upstream):
    """Where it is told in a header, instead of what the client says; no deadline, no header."""

    async def main(app: ASGIProxy) -> None:
        guarded = DeadlineMiddleware(app, timeout=5)
        exchange = await Exchange(scope("/echo", headers=[(b"x-left", b"99")])).through(guarded)
        headers = dict(json.loads(exchange.text)["headers"])
        assert 0 < float(headers["x-left"]) <= 5
        guarded.close()
        exchange = await Exchange(scope("/echo")).through(app)
        assert "x-left" not in dict(json.loads(exchange.text)["headers"])

    through(upstream.url, main, deadline_header="X-Left")


def test_a_call_that_is_cancelled_leaves_no_connection(upstream, seen):
    """As servers do that are told to stop."""
    before = seen("left /hang"), seen("entered /hang")

    async def main(app: ASGIProxy) -> None:
        call = Exchange(scope("/hang")).start(app)
        await eventually(lambda: seen("entered /hang") > before[1])
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await eventually(lambda: seen("left /hang") > before[0])

    through(upstream.url, main)


def test_a_server_that_cannot_send_has_lost_its_client(upstream, seen):
    """Some say so by an error."""
    before = seen("left /drip")

    class Gone(Exchange):
        async def send(self, message: Any) -> None:
            raise OSError("nobody there")

    async def main(app: ASGIProxy) -> None:
        await Gone(scope("/drip")).through(app)
        await eventually(lambda: seen("left /drip") > before)

    through(upstream.url, main)


def test_a_connection_that_becomes_free_is_used(upstream):
    """By whoever waited for one."""

    async def main(app: ASGIProxy) -> None:
        first, second = Exchange(scope("/drip")), Exchange(scope("/echo"))
        calls = [first.start(app)]
        await until(lambda: first.text)
        calls.append(second.start(app))
        await asyncio.sleep(0.05)
        assert second.sent == []
        first.gone.set()
        await asyncio.gather(*calls)
        assert second.status == 200

    through(upstream.url, main, max_connections=1, connect_timeout=10)
