"""Heads of requests: what is read of them, and what is no request."""

from __future__ import annotations

import pytest

from resilience_mw.health.listener.request import Request, read


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n", Request("GET", "/readyz", "", "")),
        (b"HEAD /livez HTTP/1.0\r\n\r\n", Request("HEAD", "/livez", "", "")),
        (b"GET /readyz?verbose&a=1 HTTP/1.1\r\n\r\n", Request("GET", "/readyz", "verbose&a=1", "")),
        (b"GET /readyz? HTTP/1.1\r\n\r\n", Request("GET", "/readyz", "", "")),
        (b"GET /%72eadyz HTTP/1.1\r\n\r\n", Request("GET", "/readyz", "", "")),
        (b"GET http://a:1/readyz HTTP/1.1\r\n\r\n", Request("GET", "/readyz", "", "")),
        (b"GET /a\n\n", None),
        (b"GET /r HTTP/1.1\nHost: a\n\n", Request("GET", "/r", "", "")),
        (
            b"GET /r HTTP/1.1\r\nACCEPT:  a/b \r\nX-Accept: no\r\nAccept: c\r\n\r\n",
            Request("GET", "/r", "", "a/b, c"),
        ),
        (b"POST /r HTTP/1.1\r\n\r\nbody", Request("POST", "/r", "", "", alone=False)),
        (b"GET /r HTTP/1.1\r\n\r\nAccept: late\r\n", Request("GET", "/r", "", "", alone=False)),
    ],
)
def test_what_is_read(data: bytes, expected: Request | None):
    """Method, decoded path, query and Accept; of several heads the first."""
    if expected is None:
        with pytest.raises(ValueError, match="no HTTP/1 request"):
            read(data)
    else:
        assert read(data) == expected


def test_a_head_in_pieces():
    """It is a request with the last byte of its head, and not sooner."""
    whole = b"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n"
    assert all(read(whole[:size]) is None for size in range(len(whole)))
    assert read(whole) is not None


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"GET /a",
        b"get /a HTTP/1.1",
        b"GET a HTTP/1.1",
        b"GET  /a HTTP/1.1",
        b"GET /a b HTTP/1.1",
        b"GET /a HTTP/2",
        b"PRI * HTTP/2.0",
        b"\x16\x03\x01\x02\x00\x01",
        b"GET /a#b HTTP/1.1",
        b"G\x00T /a HTTP/1.1",
        b"A" * 100 + b" /a HTTP/1.1",
    ],
)
def test_what_is_no_request(line: bytes):
    """TLS, HTTP/2, and whatever is not one method, one path and one version."""
    with pytest.raises(ValueError, match="no HTTP/1 request"):
        read(line + b"\r\n\r\n")
