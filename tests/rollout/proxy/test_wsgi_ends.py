"""How a request through the WSGI proxy ends: by whom, when, and what is left of it."""

from __future__ import annotations

import io
import logging
import os
import socket
import threading
import time
from typing import Any

import pytest

from resilience_mw.rollout.proxy import UpstreamLost, UpstreamUnreachable
from resilience_mw.rollout.proxy.wsgi import proxy
from resilience_mw.wsgi import DeadlineMiddleware
from tests.wsgi.harness import begin, call, until

from .asking import nobody, resets
from .raw import RawUpstream, says

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
PART = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_nobody_there_is_502_and_one_event(caplog, method):
    """Once for the outage, and not for each request."""
    app = proxy(nobody())
    with caplog.at_level(logging.INFO, "resilience_mw"):
        for _ in range(3):
            assert call(app, method=method) == (502, b"Bad Gateway")
    assert len(caplog.messages) == 1


def test_whoever_may_ask_another_app_is_told_so():
    """Only where nothing is lost by asking twice."""
    app = proxy(nobody(), raises=True)
    for method in ("GET", "HEAD", "OPTIONS"):
        with pytest.raises(UpstreamUnreachable) as caught:
            begin(app, method=method)
        assert caught.value.reply.status == 502
    assert call(app, method="PUT")[0] == 502


def test_an_upstream_that_hangs_is_504(upstream, seen):
    """After the proxy's own timeout; the upstream hears of it."""
    before = seen("left /hang")
    app = proxy(upstream.url, timeout=0.2)
    assert call(app, "/hang") == (504, b"Gateway Timeout")
    until(lambda: seen("left /hang") > before)


def test_a_head_that_drips_in_is_504():
    """The time is for the whole head, and not from byte to byte."""

    def talk(connection: socket.socket, head: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        while True:
            connection.sendall(b"A: b\r\n")
            time.sleep(0.02)

    with RawUpstream(talk) as raw:
        assert call(proxy(raw.url, timeout=0.3))[0] == 504


def test_the_requests_deadline_holds_across_the_proxy(upstream, seen):
    """It ends the upstream call, and with it the thread's wait."""
    before = seen("left /hang")
    app = DeadlineMiddleware(proxy(upstream.url, timeout=60), timeout=0.3)
    assert call(app, "/hang")[0] == 504
    until(lambda: seen("left /hang") > before)


def test_a_full_pool_is_a_refusal(upstream):
    """503, which says something of us, and nothing of the upstream."""
    app = proxy(upstream.url, max_connections=1, connect_timeout=0.1)
    first = begin(app, "/drip")
    second = begin(app, "/echo")
    assert (second.status, dict(second.headers)["Retry-After"]) == (503, "1")
    first.body.close()
    assert call(app, "/echo")[0] == 200
    app.close()


def test_closing_the_response_ends_the_upstream_call(upstream, seen):
    """As a server does whose client has left."""
    before = seen("left /drip")
    app = proxy(upstream.url)
    response = begin(app, "/drip")
    assert next(iter(response.body)) == b"drop"
    response.body.close()
    until(lambda: seen("left /drip") > before)
    response.body.close()


def test_a_client_that_leaves_while_it_sends_ends_the_upstream_call(upstream, seen):
    """The upstream must not take a part of a body for the whole."""
    before = seen("left /upload")
    facts = {"CONTENT_LENGTH": "100000", "wsgi.input": io.BytesIO(b"x" * 70_000)}
    assert call(proxy(upstream.url), "/upload", method="POST", **facts)[0] == 400
    until(lambda: seen("left /upload") > before)


def test_a_client_that_leaves_is_noticed_while_the_thread_waits(upstream, seen):
    """Where the server tells: here, as Gunicorn does, by the client's socket."""
    before = seen("left /hang"), seen("entered /hang")
    client, ours = socket.socketpair()
    with ours:
        facts = {"gunicorn.socket": ours}
        waiting = threading.Thread(target=call, args=(proxy(upstream.url), "/hang"), kwargs=facts)
        waiting.start()
        until(lambda: seen("entered /hang") > before[1])
        assert seen("left /hang") == before[0]
        client.close()
        waiting.join(10)
        assert not waiting.is_alive()
        until(lambda: seen("left /hang") > before[0])


def test_a_client_that_leaves_is_noticed_between_two_chunks(upstream, seen):
    """The response ends there, and so does the upstream's work."""
    before = seen("left /drip")
    client, ours = socket.socketpair()
    with ours:
        response = begin(proxy(upstream.url), "/drip", **{"gunicorn.socket": ours})
        assert next(iter(response.body)) == b"drop"
        client.close()
        assert list(response.body) == []
        until(lambda: seen("left /drip") > before)


def test_connections_expire():
    """With `keep_alive=0` none is used again."""
    with RawUpstream(says(OK, then_close=False)) as raw:
        app = proxy(raw.url, keep_alive=0)
        for _ in range(3):
            assert call(app)[1] == b"ok"
        assert raw.accepted == 3
        app.close()


def test_an_answer_that_breaks_off_is_never_taken_for_whole():
    """The server is told by an error, and closes the connection to the client."""
    with RawUpstream(says(PART)) as raw:
        response = begin(proxy(raw.url, raises=True))
        assert next(iter(response.body)) == b"abc"
        with pytest.raises(UpstreamLost):
            next(iter(response.body))
        response.body.close()


def test_an_answer_that_stands_still_is_broken_off():
    """After `idle_timeout`."""
    with RawUpstream(says(PART, then_close=False)) as raw:
        response = begin(proxy(raw.url, idle_timeout=0.2))
        with pytest.raises(UpstreamLost):
            response.read()


def test_an_answer_that_is_reset_is_never_taken_for_whole():
    """Not even one whose end is the end of the connection."""
    with RawUpstream(resets) as raw:
        response = begin(proxy(raw.url))
        with pytest.raises(UpstreamLost):
            response.read()


def test_an_upstream_that_takes_nothing_is_504():
    """After `idle_timeout`."""
    facts = {"CONTENT_LENGTH": "30000000", "wsgi.input": io.BytesIO(bytes(30_000_000))}
    with RawUpstream(lambda connection, head: time.sleep(1)) as raw:
        assert call(proxy(raw.url, idle_timeout=0.3), method="POST", **facts)[0] == 504


def test_a_deadline_that_has_passed_costs_the_upstream_nothing():
    """There is no time left to ask it."""
    with RawUpstream(says(OK)) as raw:
        inner = proxy(raw.url)

        def late(environ: Any, start_response: Any) -> Any:
            time.sleep(0.1)
            return inner(environ, start_response)

        assert call(DeadlineMiddleware(late, timeout=0.05))[0] == 504
        assert raw.accepted == 0


def test_a_start_that_fails_costs_no_connection():
    """The server may refuse what the upstream says."""

    def start_response(*call: Any) -> None:
        raise ValueError("no such header")

    with RawUpstream(says(OK, then_close=False)) as raw:
        app = proxy(raw.url, max_connections=1, connect_timeout=0.1)
        from tests.wsgi.harness import environ

        for _ in range(3):
            with pytest.raises(ValueError, match="no such header"):
                app(environ(), start_response)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("answer", "connections"),
    [(OK, 1), (OK + OK.replace(b"ok", b"no"), 3)],
    ids=["clean", "more than asked for"],
)
def test_connections_are_kept_and_used_again(answer, connections):
    """Unless more came on one than was asked for: that would be the next client's answer."""
    with RawUpstream(says(answer, then_close=False)) as raw:
        app = proxy(raw.url)
        for _ in range(3):
            assert call(app)[1] == b"ok"
        assert raw.accepted == connections
        app.close()


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nokk",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
    ],
    ids=["nothing", "no HTTP", "two lengths", "another protocol"],
)
def test_an_answer_that_is_none_is_502(answer):
    """And nothing of it reaches the client."""
    with RawUpstream(says(answer)) as raw:
        assert call(proxy(raw.url)) == (502, b"Bad Gateway")


def test_a_forked_process_has_connections_of_its_own():
    """Two processes on one connection would read each other's answers."""
    with RawUpstream(says(OK, then_close=False)) as raw:
        app = proxy(raw.url)
        assert call(app)[1] == b"ok"
        child = os.fork()
        if child == 0:
            good = [call(app)[1] for _ in range(2)] == [b"ok", b"ok"]
            os._exit(0 if good else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert call(app)[1] == b"ok"
        assert raw.accepted == 2
        app.close()
