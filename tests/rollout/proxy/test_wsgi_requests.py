"""What an upstream sees of a request that came through the WSGI proxy, and the way back."""

from __future__ import annotations

import gzip
import io
import json
from typing import Any
from urllib.parse import unquote

import pytest

from resilience_mw.rollout.proxy.wsgi import proxy
from tests.wsgi.harness import Response, begin

from .raw import RawUpstream, says

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def fetch(url: str, path: str = "/", options: Any = None, **facts: Any) -> tuple[Response, bytes]:
    """Send one request through a new proxy."""
    app = proxy(url, **(options or {}))
    try:
        response = begin(app, path, **{"HTTP_HOST": "example.org", **facts})
        return response, response.read()
    finally:
        app.close()


def echoed(answer: tuple[Response, bytes]) -> tuple[Any, dict[str, str]]:
    """Return what the upstream saw, and its header."""
    assert answer[0].status == 200
    report = json.loads(answer[1])
    headers = dict(report["headers"])
    assert len(headers) == len(report["headers"])
    return report, headers


@pytest.mark.parametrize("name", ["RAW_URI", "REQUEST_URI"])
@pytest.mark.parametrize("path", ["/a%20b", "//twice", "/%2e%2e/up", "/%ff", "/a;b=c?d=%2F&&"])
def test_path_and_query_stay_as_the_client_wrote_them(upstream, path, name):
    """Where the server tells how they were written."""
    raw, _, query = path.partition("?")
    facts = {name: path, "QUERY_STRING": query}
    report, _ = echoed(fetch(upstream.url, unquote(raw, "latin-1"), **facts))
    assert (report["path"], report["query"]) == (raw, query)


@pytest.mark.parametrize("raw", ["/old", "http://example.org/new", None])
def test_a_path_is_written_anew_where_nobody_knows_how_it_was(upstream, raw):
    """Nothing tells, or it tells of another path."""
    facts = {} if raw is None else {"RAW_URI": raw}
    path = "/new path/\u00e9".encode().decode("latin-1")
    report, _ = echoed(fetch(upstream.url, path, **facts))
    assert report["path"] == "/new%20path/%C3%A9"


def test_the_mount_point_is_told_and_taken_off(upstream):
    """The upstream stands where the app stood: below the mount point."""
    report, headers = echoed(fetch(upstream.url, "/page", root="/shop", RAW_URI="/shop/page"))
    assert report["path"] == "/page"
    assert headers["x-forwarded-prefix"] == "/shop"


def test_the_upstream_learns_who_asked_for_what(upstream):
    """Host stays, the hop that we are is added, and one hop's header ends here."""
    facts = {
        "HTTP_X_FORWARDED_FOR": "10.0.0.1",
        "HTTP_X_FORWARDED_PROTO": "http",
        "HTTP_X_REAL_IP": "10.9.9.9",
        "HTTP_CONNECTION": "x-secret, host",
        "HTTP_X_SECRET": "1",
        "HTTP_EXPECT": "100-continue",
        "HTTP_CONTENT_LENGTH": "7",
        "HTTP_COOKIE": "c" * 30_000,
        "wsgi.url_scheme": "https",
        "REMOTE_ADDR": "192.0.2.7",
    }
    _, headers = echoed(fetch(upstream.url, **facts))
    assert headers.pop("cookie") == "c" * 30_000
    assert headers == {
        "host": "example.org",
        "x-forwarded-for": "10.0.0.1, 192.0.2.7",
        "x-forwarded-host": "example.org",
        "x-forwarded-proto": "https",
        "via": "1.1 resilience_mw",
    }


def test_a_trusted_proxy_is_believed(upstream):
    """What the proxy in front of us says of its client goes on."""
    facts = {"HTTP_X_FORWARDED_PROTO": "https"}
    options = {"trusted_proxies": ["127.0.0.1"]}
    _, headers = echoed(fetch(upstream.url, options=options, **facts))
    assert headers["x-forwarded-proto"] == "https"


def test_a_proxy_that_the_client_has_named_is_not_believed(upstream):
    """Where the socket is out of reach, the address may be out of the client's own header."""
    facts = {"HTTP_X_FORWARDED_PROTO": "https", "HTTP_X_FORWARDED_FOR": "127.0.0.1"}
    options = {"trusted_proxies": ["127.0.0.1"]}
    _, headers = echoed(fetch(upstream.url, options=options, **facts))
    assert headers["x-forwarded-proto"] == "http"


@pytest.mark.parametrize(
    "facts",
    [
        {"CONTENT_LENGTH": "200000"},
        {"HTTP_TRANSFER_ENCODING": "Chunked", "wsgi.input_terminated": True},
    ],
    ids=["length", "chunks"],
)
def test_a_body_is_sent_on_with_its_bound(upstream, facts):
    """By length or in chunks, as it came."""
    body = io.BytesIO(b"x" * 200_000)
    facts = {"method": "POST", "CONTENT_TYPE": "text/x", "wsgi.input": body, **facts}
    report, headers = echoed(fetch(upstream.url, **facts))
    assert report["body"] == 200_000
    assert headers["content-type"] == "text/x"
    assert ("content-length" in headers) == ("CONTENT_LENGTH" in facts)


def test_no_more_of_the_input_is_read_than_belongs_to_the_request(upstream):
    """What follows is of the next request, or never comes."""
    body = io.BytesIO(b"abcdef")
    facts: dict[str, Any] = {"wsgi.input": body, "CONTENT_LENGTH": "4"}
    report, _ = echoed(fetch(upstream.url, method="POST", **facts))
    assert report["body"] == 4
    assert body.read() == b"ef"


def test_responses_come_back_as_they_are(upstream):
    """No redirect is followed, no cookie kept, nothing unpacked; one hop's header ends here."""
    response, body = fetch(upstream.url, "/various")
    assert response.status == 302
    assert [value for name, value in response.headers if name == "set-cookie"] == ["a=1", "b=2"]
    headers = dict(response.headers)
    assert headers["via"] == "1.0 cache, 1.1 resilience_mw"
    assert not {"connection", "x-one-hop", "date", "server"} & set(headers)
    assert gzip.decompress(body) == b"packed"


@pytest.mark.parametrize("status", [204, 304])
def test_answers_without_a_body(upstream, status):
    """They end at once."""
    response, body = fetch(upstream.url, "/nothing", QUERY_STRING=f"status={status}")
    assert (response.status, body) == (status, b"")


def test_head_has_the_length_and_not_the_body(upstream):
    """The length says what GET would send."""
    facts = {"method": "HEAD", "QUERY_STRING": "size=70000&length"}
    response, body = fetch(upstream.url, "/download", **facts)
    assert (response.status, body) == (200, b"")
    assert dict(response.headers)["content-length"] == "70000"


@pytest.mark.parametrize("length", ["", "&length"])
def test_large_answers_arrive_whole(upstream, length):
    """With a length, and in chunks."""
    response, body = fetch(upstream.url, "/download", QUERY_STRING=f"size=3000000{length}")
    assert len(body) == 3_000_000
    assert ("content-length" in dict(response.headers)) == bool(length)


def test_a_status_without_a_name_has_one_for_wsgi():
    """WSGI wants a phrase."""
    with RawUpstream(says(b"HTTP/1.1 299 \r\nContent-Length: 0\r\n\r\n")) as raw:
        response, _ = fetch(raw.url)
        assert response.starts[0][0] == "299 Unknown"


HOSTILE: dict[str, dict[str, Any]] = {
    "both bounds": {"CONTENT_LENGTH": "4", "HTTP_TRANSFER_ENCODING": "chunked"},
    "two lengths": {"CONTENT_LENGTH": "4,4"},
    "a signed length": {"CONTENT_LENGTH": "+4"},
    "another coding": {"HTTP_TRANSFER_ENCODING": "gzip,chunked"},
    "HTTP/1.0": {"HTTP_TRANSFER_ENCODING": "chunked", "SERVER_PROTOCOL": "HTTP/1.0"},
    "a line feed": {"HTTP_X_A": "b\nc: d"},
    "a bad host": {"HTTP_HOST": "a/b"},
    "no name": {"HTTP_": "a"},
    "a bad query": {"QUERY_STRING": "a b"},
    "no path": {"PATH_INFO": "evil"},
}


@pytest.mark.parametrize("facts", HOSTILE.values(), ids=HOSTILE)
def test_what_two_servers_may_read_in_two_ways_is_refused(facts):
    """The upstream never hears of it."""
    with RawUpstream(says(OK)) as raw:
        response, _ = fetch(raw.url, **{"method": "POST", "wsgi.input_terminated": True, **facts})
        assert response.status == 400
        assert raw.accepted == 0


def test_a_body_whose_end_nobody_tells_is_refused():
    """The server leaves the chunks to itself, and reading on would wait for the next request."""
    with RawUpstream(says(OK)) as raw:
        response, _ = fetch(raw.url, method="POST", HTTP_TRANSFER_ENCODING="chunked")
        assert response.status == 411
        assert raw.accepted == 0


def test_websockets_are_refused(caplog):
    """In words, and with one event."""
    app = proxy("http://127.0.0.1:9")
    for _ in range(2):
        response = begin(app, HTTP_UPGRADE="websocket", HTTP_CONNECTION="upgrade")
        assert response.status == 403
        assert b"WebSocket" in response.read()
    assert len(caplog.messages) == 1
