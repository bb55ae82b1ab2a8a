"""What a client gets when the upstream fails, and what becomes of the connections."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time

import pytest

from resilience_mw.rollout.proxy import UpstreamLost, UpstreamUnreachable
from resilience_mw.rollout.proxy.asgi import proxy
from resilience_mw.rollout.proxy.asgi_proxy import ASGIProxy
from resilience_mw.rollout.proxy.leftovers import has_leftovers
from resilience_mw.rollout.proxy.reach import Reach
from resilience_mw.rollout.proxy.wsgi import proxy as wsgi_proxy
from tests.asgi.harness import Exchange, run, scope
from tests.wsgi.harness import begin, call

from .asking import LOOPS, eventually, nobody, resets, through
from .raw import RawUpstream, says


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


@pytest.mark.parametrize("status", [0, 42, 600, 999])
def test_a_status_that_is_none_is_502(status):
    """Servers fall over some of them, and the client gets nothing."""
    answer = b"HTTP/1.1 %03d X\r\nContent-Length: 0\r\n\r\n" % status

    async def main(app: ASGIProxy) -> None:
        assert (await Exchange(scope()).through(app)).status == 502

    with RawUpstream(says(answer)) as raw:
        through(raw.url, main)
        assert call(wsgi_proxy(raw.url)) == (502, b"Bad Gateway")


def test_what_has_no_content_has_no_length():
    """RFC 9110, 8.6: a client would wait for it, or take the next response for it."""

    async def main(app: ASGIProxy) -> None:
        exchange = await Exchange(scope()).through(app)
        assert exchange.status == 204
        assert b"content-length" not in exchange.headers

    with RawUpstream(says(b"HTTP/1.1 204 X\r\nContent-Length: 3\r\n\r\nabc")) as raw:
        through(raw.url, main)
        answer = begin(wsgi_proxy(raw.url))
        assert answer.read() == b""
        assert "content-length" not in dict(answer.headers)


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


def test_an_answer_that_is_reset_is_never_taken_for_whole():
    """Not even one whose end is the end of the connection."""

    async def main(app: ASGIProxy) -> None:
        with pytest.raises(UpstreamLost):
            await Exchange(scope()).through(app)

    with RawUpstream(resets) as raw:
        through(raw.url, main)


def test_an_upstream_that_takes_nothing_is_504():
    """After `idle_timeout`."""

    async def main(app: ASGIProxy) -> None:
        body = [{"type": "http.request", "body": b"x" * 30_000_000}]
        head = scope(method="POST", headers=[(b"content-length", b"30000000")])
        assert (await Exchange(head, body).through(app)).status == 504

    with RawUpstream(lambda connection, head: time.sleep(1)) as raw:
        through(raw.url, main, idle_timeout=0.3)


@pytest.mark.parametrize("parts", [[b"abc"], [b"a"], [b""], [b"a", b"bc"], [b"a", b""]], ids=str)
def test_a_body_that_is_not_as_long_as_it_says_is_400(parts):
    """Servers see to that; if one does not, the upstream must not pay for it."""

    async def main(app: ASGIProxy) -> None:
        head = scope(method="POST", headers=[(b"content-length", b"2")])
        body = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
        body[-1]["more_body"] = False
        assert (await Exchange(head, body).through(app)).status == 400

    with RawUpstream(lambda connection, head: None) as raw:
        through(raw.url, main)


def test_connections_expire():
    """With `keep_alive=0` none is used again."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

    async def main(app: ASGIProxy) -> None:
        for _ in range(3):
            assert (await Exchange(scope()).through(app)).text == b"ok"

    with RawUpstream(says(answer, then_close=False)) as raw:
        through(raw.url, main, keep_alive=0)
        assert raw.accepted == 3


def test_an_outage_has_an_end(upstream, caplog, monkeypatch):
    """It is said once nothing has failed for a while."""
    reach = Reach("http://upstream")
    reach.answered()
    reach.failed("refused")
    reach.answered()
    reach.failed("refused")
    assert len(caplog.messages) == 1
    monkeypatch.setattr("resilience_mw.rollout.proxy.reach.CALM", -1.0)
    reach.answered()
    reach.answered()
    assert caplog.messages[1:] == ["upstream http://upstream is reachable again"]


def test_what_httpcore_hides_is_taken_for_the_worst():
    """A new connection for each request is slow, but safe."""
    assert has_leftovers(object())


def test_a_forked_process_has_connections_of_its_own():
    """Two processes on one connection would read each other's answers."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

    async def fetch(app: ASGIProxy) -> int | None:
        return (await Exchange(scope()).through(app)).status

    with RawUpstream(says(answer, then_close=False)) as raw:
        app = proxy(raw.url)
        loop = asyncio.new_event_loop()
        assert loop.run_until_complete(fetch(app)) == 200
        child = os.fork()
        if child == 0:
            own = asyncio.new_event_loop()
            good = [own.run_until_complete(fetch(app)) for _ in range(2)] == [200, 200]
            own.run_until_complete(app.aclose())
            os._exit(0 if good else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert loop.run_until_complete(fetch(app)) == 200
        assert raw.accepted == 2
        loop.run_until_complete(app.aclose())
        loop.close()


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
