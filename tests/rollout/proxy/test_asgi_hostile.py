"""Requests and responses that are meant to confuse: an answer of 400 or 502, and never two."""

from __future__ import annotations

from typing import Any

import pytest

from resilience_mw.rollout.proxy.asgi import proxy
from tests.asgi.harness import Exchange, run, scope

from .raw import RawUpstream, says

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

SMUGGLED = {
    "both bounds": [(b"content-length", b"4"), (b"transfer-encoding", b"chunked")],
    "two lengths": [(b"content-length", b"4"), (b"content-length", b"5")],
    "the same length twice": [(b"content-length", b"4"), (b"content-length", b"4")],
    "a list of lengths": [(b"content-length", b"4, 4")],
    "a signed length": [(b"content-length", b"+4")],
    "a length below zero": [(b"content-length", b"-4")],
    "a length in hex": [(b"content-length", b"0x4")],
    "no length": [(b"content-length", b"")],
    "another script's digits": [(b"content-length", "\u0664".encode())],
    "a length with a blank": [(b"content-length", b"4 ")],
    "a length too long for anybody": [(b"content-length", b"9" * 30)],
    "another coding": [(b"transfer-encoding", b"gzip")],
    "two codings": [(b"transfer-encoding", b"gzip, chunked")],
    "chunked twice": [(b"transfer-encoding", b"chunked"), (b"transfer-encoding", b"chunked")],
    "almost chunked": [(b"transfer-encoding", b"xchunked")],
    "chunked after a tab": [(b"transfer-encoding", b"\x0bchunked")],
    "chunked and a blank": [(b"transfer-encoding", b"chunked ")],
    "two hosts": [(b"host", b"other.example")],
    "a line feed in a value": [(b"x-a", b"b\nX-Forwarded-For: 1.1.1.1")],
    "a carriage return in a value": [(b"x-a", b"b\rc")],
    "a zero in a value": [(b"x-a", b"b\0c")],
    "a name with a colon": [(b"x-a:", b"b")],
    "a name with a blank": [(b"transfer-encoding ", b"chunked")],
    "no name": [(b"", b"b")],
}


def ask(raw: RawUpstream, head: Any, **options: Any) -> Exchange:
    """Send one request through a new proxy to a raw upstream."""

    async def main() -> Exchange:
        app = proxy(raw.url, **options)
        try:
            return await Exchange(head).through(app)
        finally:
            await app.aclose()

    return run(main())


@pytest.mark.parametrize("headers", SMUGGLED.values(), ids=SMUGGLED)
def test_what_two_servers_may_read_in_two_ways_is_refused(headers):
    """400, the connection closes, and the upstream never hears of it."""
    with RawUpstream(says(OK)) as raw:
        exchange = ask(raw, scope("/", method="POST", headers=headers))
        assert exchange.status == 400
        assert exchange.headers[b"connection"] == b"close"
        assert raw.accepted == 0


@pytest.mark.parametrize(
    "facts",
    [
        {"raw_path": b"/a b", "path": "/a b"},
        {"raw_path": b"/a\r\nX: y", "path": "/a\r\nX: y"},
        {"raw_path": b"http://evil.example/", "path": "http://evil.example/"},
        {"raw_path": b"*", "path": "*"},
        {"raw_path": b"", "path": ""},
        {"query_string": b"a=b HTTP/1.1\r\nX: y"},
        {"query_string": b"a#b"},
        {"headers": [(b"host", b"a b")]},
        {"headers": [(b"host", b"user@evil.example")]},
        {"headers": [(b"host", b"evil.example/path")]},
        {"http_version": "1.0", "headers": [(b"transfer-encoding", b"chunked")]},
    ],
    ids=str,
)
def test_targets_and_hosts_that_are_none(facts):
    """A request line has two blanks and one line's end, and a host has no path."""
    with RawUpstream(says(OK)) as raw:
        head = {**scope("/"), **facts}
        exchange = ask(raw, head)
        if facts.get("path") in ("/a b", "/a\r\nX: y"):
            # Decoded, such a path is in order; written anew, it is as well.
            assert exchange.status in (200, 400)
            assert all(b"\r\nX: y" not in seen for seen in raw.heads)
        else:
            assert exchange.status == 400
            assert raw.accepted == 0


def test_bytes_that_are_no_ascii_are_escaped():
    """Some servers let them through, ours to the upstream would not."""
    with RawUpstream(says(OK)) as raw:
        head = scope("/", query_string="q=\u00e9".encode())
        assert ask(raw, head).status == 200
        assert raw.heads[0].startswith(b"GET /?q=%C3%A9 HTTP/1.1\r\n")


def test_options_may_ask_for_the_server_itself():
    """The one target that is no path."""
    with RawUpstream(says(OK)) as raw:
        head = {**scope(method="OPTIONS"), "path": "*", "raw_path": b"*"}
        assert ask(raw, head).status == 200
        assert raw.heads[0].startswith(b"OPTIONS * HTTP/1.1\r\n")


def test_tunnels_are_refused():
    """CONNECT asks for another protocol."""
    with RawUpstream(says(OK)) as raw:
        assert ask(raw, scope("/", method="CONNECT")).status == 501
        assert raw.accepted == 0


def test_a_proxy_that_leads_to_itself_ends():
    """After a few rounds, and not when all connections are taken."""
    with RawUpstream(says(OK)) as raw:
        passed = [(b"via", b", ".join([b"1.1 resilience_mw"] * 4))]
        assert ask(raw, scope(headers=passed)).status == 200
        passed = [(b"via", b", ".join([b"1.1 resilience_mw"] * 5))]
        assert ask(raw, scope(headers=passed)).status == 508
        assert raw.accepted == 1


BROKEN = {
    "nothing": b"",
    "no status": b"HTTP/1.1\r\n\r\n",
    "no HTTP": b"SSH-2.0-OpenSSH\r\n\r\n",
    "half a head": b"HTTP/1.1 200 OK\r\nContent-Le",
    "a name with a blank": b"HTTP/1.1 200 OK\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nokk",
    "a signed length": b"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok",
    "another coding": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "a zero in a value": b"HTTP/1.1 200 OK\r\nA: b\0c\r\nContent-Length: 2\r\n\r\nok",
    "a head without end": b"HTTP/1.1 200 OK\r\nA: " + b"b" * 200_000,
    "another protocol": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
}


@pytest.mark.parametrize("answer", BROKEN.values(), ids=BROKEN)
def test_an_answer_that_is_none_is_502(answer):
    """And nothing of it reaches the client."""
    with RawUpstream(says(answer)) as raw:
        exchange = ask(raw, scope())
        assert (exchange.status, exchange.text) == (502, b"Bad Gateway")


def test_a_length_beside_chunks_does_not_reach_the_client():
    """The chunks are what bounded the body (RFC 9112 section 6.3)."""
    answer = (
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n"
        b"Trailer: x-sum\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n"
    )
    with RawUpstream(says(answer)) as raw:
        exchange = ask(raw, scope())
        assert exchange.text == b"ok"
        assert dict(exchange.headers) == {b"via": b"1.1 resilience_mw"}


def test_interim_answers_are_not_taken_for_the_answer():
    """100 and 103 come before the response."""
    hints = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    with RawUpstream(says(hints + OK)) as raw:
        assert ask(raw, scope()).text == b"ok"


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_bytes_after_an_answer_are_nobodys(loop):
    """A connection on which more came than was asked for is not used again."""

    async def main() -> None:
        app = proxy(raw.url)
        for _ in range(3):
            assert (await Exchange(scope()).through(app)).text == b"ok"
        await app.aclose()

    with RawUpstream(says(OK + OK.replace(b"ok", b"no"), then_close=False)) as raw:
        run(main(), loop)
        assert raw.accepted == 3


WEBSOCKET = {**scope(), "type": "websocket", "scheme": "ws"}


def test_websockets_are_refused():
    """With a close before it was accepted, which is a 403; or with words, if the server can."""

    async def main() -> None:
        app = proxy("http://127.0.0.1:9")
        connect = [{"type": "websocket.connect"}]
        exchange = await Exchange({**WEBSOCKET}, connect).through(app)
        assert [message["type"] for message in exchange.sent] == ["websocket.close"]
        extended = {**WEBSOCKET, "extensions": {"websocket.http.response": {}}}
        exchange = await Exchange(extended, connect).through(app)
        assert exchange.sent[0]["status"] == 403
        assert b"WebSocket" in exchange.sent[1]["body"]
        gone = await Exchange({**WEBSOCKET}, [{"type": "websocket.disconnect"}]).through(app)
        assert gone.sent == []
        upgrade = await Exchange(scope(headers=[(b"upgrade", b"WebSocket")])).through(app)
        assert upgrade.status == 403

    run(main())
