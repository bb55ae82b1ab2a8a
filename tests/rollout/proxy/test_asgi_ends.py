"""How a request through the ASGI proxy ends: by whom, when, and what is left of it."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from resilience_mw.asgi import DeadlineMiddleware
from resilience_mw.rollout.proxy import UpstreamLost, UpstreamUnreachable
from resilience_mw.rollout.proxy.asgi import proxy
from resilience_mw.rollout.proxy.asgi_proxy import ASGIProxy
from tests.asgi.harness import Exchange, run, scope, until

from .raw import RawUpstream, says

LOOPS = ["asyncio", "uvloop"]


def through(url: str, main: Callable[[ASGIProxy], Awaitable[Any]], **options: Any) -> Any:
    """Run a test with a proxy that is closed at its end."""

    async def whole() -> Any:
        app = proxy(url, **options)
        try:
            return await main(app)
        finally:
            await app.aclose()

    return run(whole())


def nobody() -> str:
    """Return the URL of a port at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


async def eventually(seen: Callable[[], bool]) -> None:
    """Wait for what another process does."""
    deadline = time.monotonic() + 10
    while not await asyncio.to_thread(seen):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


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


def test_leaving_clients_use_up_no_connections(upstream):
    """Hundreds that leave at any moment, through two connections; then one is answered."""

    async def main(app: ASGIProxy) -> None:
        for turns in range(60):
            exchanges = [Exchange(scope("/hang")) for _ in range(4)]
            calls = [exchange.start(app) for exchange in exchanges]
            for _ in range(turns):
                await asyncio.sleep(0)
            for exchange in exchanges:
                exchange.gone.set()
            await asyncio.wait(calls)
        assert app.pools.current().http.connections == []
        last = await Exchange(scope("/echo")).through(app)
        assert last.status == 200

    through(upstream.url, main, max_connections=2)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_nobody_there_is_502_and_one_event(caplog, method):
    """Once for the outage, and not for each request."""

    async def main(app: ASGIProxy) -> None:
        for _ in range(3):
            exchange = await Exchange(scope(method=method)).through(app)
            assert (exchange.status, exchange.text) == (502, b"Bad Gateway")

    with caplog.at_level(logging.INFO, "resilience_mw"):
        through(nobody(), main)
    assert len(caplog.messages) == 1
    assert "unreachable" in caplog.messages[0]


def test_whoever_may_ask_another_app_is_told_so():
    """Only where nothing is lost by asking twice."""

    async def main(app: ASGIProxy) -> None:
        for method in ("GET", "HEAD", "OPTIONS"):
            exchange = Exchange(scope(method=method))
            with pytest.raises(UpstreamUnreachable) as caught:
                await exchange.through(app)
            assert caught.value.reply.status == 502
            assert exchange.sent == []
        assert (await Exchange(scope(method="PUT")).through(app)).status == 502

    through(nobody(), main, raises=True)


def test_an_upstream_that_hangs_is_504(upstream, seen):
    """After the proxy's own timeout; the upstream hears of it."""
    before = seen("left /hang")

    async def main(app: ASGIProxy) -> None:
        exchange = await Exchange(scope("/hang")).through(app)
        assert (exchange.status, exchange.text) == (504, b"Gateway Timeout")
        await eventually(lambda: seen("left /hang") > before)

    through(upstream.url, main, timeout=0.2)


def test_a_head_that_drips_in_is_504():
    """The time is for the whole head, and not from byte to byte."""

    def talk(connection: socket.socket, head: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        while True:
            connection.sendall(b"A: b\r\n")
            time.sleep(0.02)

    async def main(app: ASGIProxy) -> None:
        assert (await Exchange(scope()).through(app)).status == 504

    with RawUpstream(talk) as raw:
        through(raw.url, main, timeout=0.3)


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


def test_an_answer_that_breaks_off_is_never_taken_for_whole():
    """The server is told by an error, and closes the connection to the client."""
    part = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"

    async def main(app: ASGIProxy) -> None:
        exchange = Exchange(scope())
        with pytest.raises(UpstreamLost):
            await exchange.through(app)
        assert exchange.text == b"abc"
        assert exchange.sent[-1]["more_body"]

    with RawUpstream(says(part)) as raw:
        through(raw.url, main, raises=True)


def test_an_answer_that_stands_still_is_broken_off():
    """After `idle_timeout`."""
    part = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"

    async def main(app: ASGIProxy) -> None:
        with pytest.raises(UpstreamLost):
            await Exchange(scope()).through(app)

    with RawUpstream(says(part, then_close=False)) as raw:
        through(raw.url, main, idle_timeout=0.2)


def test_connections_are_kept_and_used_again():
    """One is enough for requests that follow each other."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

    async def main(app: ASGIProxy) -> None:
        for _ in range(5):
            assert (await Exchange(scope()).through(app)).text == b"ok"

    with RawUpstream(says(answer, then_close=False)) as raw:
        through(raw.url, main)
        assert raw.accepted == 1


def test_every_loop_has_connections_of_its_own(upstream):
    """One app object, run on one loop after another."""
    app = proxy(upstream.url)

    async def main() -> None:
        assert (await Exchange(scope("/echo")).through(app)).status == 200
        await app.aclose()

    for loop in (*LOOPS, *LOOPS):
        run(main(), loop)
