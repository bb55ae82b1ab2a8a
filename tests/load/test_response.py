from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.load.response import MalformedResponse, Response, ResponseReader

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
COMPLETE = [
    (OK, Response(200, None, True)),
    (b"HTTP/1.1 503 x\r\nretry-after: 3\r\ncontent-length: 0\r\n\r\n", Response(503, "3", True)),
    (b"HTTP/1.1 204 No\r\n\r\n", Response(204, None, True)),
    (b"HTTP/1.1 304 No\r\nContent-Length: 9\r\n\r\n", Response(304, None, True)),
    (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\nA\r\n0123456789\r\n"
        b"0\r\n\r\n",
        Response(200, None, True),
    ),
    (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Sum: 1\r\n\r\n",
        Response(200, None, True),
    ),
    (
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        Response(200, None, False),
    ),
    (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", Response(200, None, False)),
    (
        b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\nok",
        Response(200, None, True),
    ),
    (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, Response(200, None, True)),
]


@pytest.mark.parametrize(("data", "response"), COMPLETE)
def test_a_response_in_one_piece(data, response):
    """Whatever frames the body, the end is found and the connection judged."""
    reader = ResponseReader()
    assert reader.feed(data) == response
    assert not reader.started


@given(st.sampled_from(COMPLETE), st.data())
def test_a_response_in_any_pieces(case, data):
    """Where the network cuts does not matter, and nothing is complete before the last byte."""
    (whole, response) = case
    cuts = sorted(data.draw(st.sets(st.integers(1, len(whole) - 1), max_size=6)))
    reader = ResponseReader()
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    for piece in pieces[:-1]:
        assert reader.feed(piece) is None
        assert reader.started or whole.startswith(b"HTTP/1.1 100")
    assert reader.feed(pieces[-1]) == response


def test_one_response_after_another():
    """A reader starts afresh after each response."""
    reader = ResponseReader()
    for data, response in COMPLETE * 2:
        assert reader.feed(data) == response


def test_head_has_no_body():
    """The length of an answer to HEAD announces a body that never comes."""
    reader = ResponseReader("HEAD")
    assert reader.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n") is not None


def test_surplus_makes_a_connection_useless():
    """Bytes after the end belong to no request, so the connection must not be used again."""
    assert ResponseReader().feed(OK + b"x") == Response(200, None, False)
    chunked = COMPLETE[4][0]
    assert ResponseReader().feed(chunked + b"x") == Response(200, None, False)


def test_a_body_until_close_ends_with_it():
    """Without a length only the close ends the body, and it is no failure."""
    reader = ResponseReader()
    assert reader.feed(b"HTTP/1.1 200 OK\r\n\r\nsome") is None
    assert reader.feed(b" more") is None
    assert reader.close() == Response(200, None, False)


def test_a_close_within_a_body_is_no_end():
    """A body with a length that is cut off is not a response."""
    reader = ResponseReader()
    reader.feed(OK[:-1])
    assert reader.close() is None


@pytest.mark.parametrize(
    "data",
    [
        b"220 smtp ready\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
    ],
)
def test_nonsense_is_told_apart(data):
    """What is not HTTP is an error of its own, not a hang."""
    with pytest.raises(MalformedResponse):
        ResponseReader().feed(data)
