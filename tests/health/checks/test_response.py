"""An answer counts when all of it has come, within bounds."""

from __future__ import annotations

import socket
import threading

import pytest

from resilience_mw.health import UpstreamCheck
from resilience_mw.health.response import MAX_BODY, MAX_HEAD
from tests.health.checks.asking import PASSED, ask
from tests.health.checks.peer import OK

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

WHOLE = {
    "until it closes": b"HTTP/1.0 200 OK\r\n\r\nsome text",
    "nothing at all": b"HTTP/1.1 200 OK\r\n\r\n",
    "no reason phrase": b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n",
    "chunks": CHUNKED + b"2\r\nok\r\n3;name=value\r\nyes\r\n0\r\n\r\n",
    "chunks and trailers": CHUNKED + b"2\r\nok\r\n0\r\nExpires: 0\r\n\r\n",
    "continue": b"HTTP/1.1 100 Continue\r\n\r\n" + OK,
    "early hints": b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 2 + OK,
    "folded header": b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n",
    "one length, twice": b"HTTP/1.1 200 OK\r\n" + b"Content-Length: 2\r\n" * 2 + b"\r\nok",
}

CUT_SHORT = {
    "in the head": b"HTTP/1.1 200 OK\r\nContent-",
    "in the body": b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfour",
    "in a chunk": CHUNKED + b"a\r\nfour",
    "between chunks": CHUNKED + b"2\r\nok\r\n",
    "after continue": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200",
}

BAD = {
    "another protocol": b"220 mail.example ESMTP\r\n\r\n",
    "HTTP/0.9": b"<html>hello</html>\r\n\r\n",
    "HTTP/2": b"HTTP/2.0 200 OK\r\n\r\n",
    "no number": b"HTTP/1.1 OK\r\n\r\n",
    "a number of two digits": b"HTTP/1.1 20 OK\r\n\r\n",
    "chunk size": CHUNKED + b"many\r\nok\r\n",
    "negative chunk size": CHUNKED + b"-2\r\nok\r\n",
    "signed chunk size": CHUNKED + b"+2\r\nok\r\n0\r\n\r\n",
    "prefixed chunk size": CHUNKED + b"0x2\r\nok\r\n0\r\n\r\n",
    "huge chunk size": CHUNKED + b"f" * 5000 + b"\r\nok",
    "unreadable length": b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\ntext",
    "negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\ntext",
    "huge length": b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\ntext",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 4\r\n\r\ntext",
    "too many headers": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 500 + b"\r\n",
    "endless head": b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 2 * MAX_HEAD,
    "endless hints": b"HTTP/1.1 103 Early Hints\r\n\r\n" * (MAX_HEAD // 20),
}


@pytest.mark.parametrize("answer", WHOLE.values(), ids=WHOLE)
def test_whole_answers_pass(peer, answer):
    """However they end."""
    assert ask(UpstreamCheck(peer(answer).url(), timeout=10)) == PASSED


@pytest.mark.parametrize("answer", CUT_SHORT.values(), ids=CUT_SHORT)
def test_answers_cut_short_fail(peer, answer):
    """A peer that dies half way does not work, whatever it had promised."""
    check = UpstreamCheck(peer(answer).url(), timeout=10)
    assert ask(check) == "cut short"
    assert check.status is None


@pytest.mark.parametrize("answer", BAD.values(), ids=BAD)
def test_bad_answers_fail(peer, answer):
    """At once, and within bounds."""
    assert ask(UpstreamCheck(peer(answer).url(), timeout=10)) == "bad response"


def test_no_answer_fails(peer):
    """The peer hangs up: with a clean end, or with a reset."""
    assert ask(UpstreamCheck(peer(b"").url(), timeout=10)) == "closed"

    def reset(connection: socket.socket, _: bytes) -> None:
        linger = (1).to_bytes(4, "little") + (0).to_bytes(4, "little")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)

    assert ask(UpstreamCheck(peer(reset).url(), timeout=10)) == "closed"


def test_half_closed_fails(peer):
    """A peer that will write nothing any more, and keeps the connection otherwise."""
    done = threading.Event()

    def half_close(connection: socket.socket, _: bytes) -> None:
        connection.shutdown(socket.SHUT_WR)
        done.wait(10)

    try:
        assert ask(UpstreamCheck(peer(half_close).url(), timeout=10)) == "closed"
    finally:
        done.set()


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\n\r\n", CHUNKED], ids=["plain", "chunked"])
def test_an_endless_body_is_not_read(peer, head):
    """Its beginning is enough, and memory stays bounded."""
    sent = 0

    def pour(connection: socket.socket, _: bytes) -> None:
        nonlocal sent
        connection.sendall(head)
        while True:
            sent += connection.send(b"1000\r\n" + b"x" * 0x1000 + b"\r\n")

    upstream = peer(pour)
    assert ask(UpstreamCheck(upstream.url(), timeout=10)) == PASSED
    upstream.close()
    # What the system buffers comes on top, some megabytes on loopback.
    assert MAX_BODY <= sent < 50_000_000


def test_a_long_body_of_known_length_passes(peer):
    """Without being read to its end."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n" + b"x" * 2 * MAX_BODY
    assert ask(UpstreamCheck(peer(answer).url(), timeout=10)) == PASSED
