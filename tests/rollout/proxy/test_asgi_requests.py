"""What an upstream sees of a request that came through the ASGI proxy, and the way back."""

from __future__ import annotations

import gzip
import json
from typing import Any
from urllib.parse import unquote

import pytest

from resilience_mw.rollout.proxy.asgi import proxy
from tests.asgi.harness import Exchange, run, scope


def fetch(url: str, path: str = "/", body: Any = None, options: Any = None, **facts: Any) -> Any:
    """Send one request through a new proxy."""

    async def main() -> Exchange:
        app = proxy(url, **(options or {}))
        exchange = Exchange(scope(path, **facts))
        if body is not None:
            exchange = Exchange(exchange.scope, body)
        try:
            return await exchange.through(app)
        finally:
            await app.aclose()

    return run(main())


def echoed(exchange: Exchange) -> tuple[Any, dict[str, str]]:
    """Return what the upstream saw, and its header."""
    assert exchange.status == 200
    report = json.loads(exchange.text)
    headers = dict(report["headers"])
    assert len(headers) == len(report["headers"])
    return report, headers


@pytest.mark.parametrize(
    "path", ["/a%20b", "//twice", "/%2e%2e/up", "/a/../b", "/%ff", "/caf%C3%A9", "/a;b=c?d=%2F&&"]
)
def test_path_and_query_stay_as_the_client_wrote_them(upstream, path):
    """Nothing is normalised on the way: what we decided upon is what the upstream gets."""
    raw, _, query = path.partition("?")
    facts = {"raw_path": raw.encode(), "query_string": query.encode()}
    report, _ = echoed(fetch(upstream.url, unquote(raw), **facts))
    assert (report["path"], report["query"]) == (raw, query)


def test_a_path_that_was_changed_on_the_way_goes_on_as_changed(upstream):
    """A middleware rewrites `path` alone; the raw one is then of another request."""
    report, _ = echoed(fetch(upstream.url, "/new path/é", raw_path=b"/old"))
    assert report["path"] == "/new%20path/%C3%A9"


def test_the_mount_point_is_told_and_taken_off(upstream):
    """The upstream stands where the app stood: below the mount point."""
    report, headers = echoed(
        fetch(upstream.url, "/page%20", root="/shop", raw_path=b"/shop/page%2520")
    )
    assert report["path"] == "/page%2520"
    assert headers["x-forwarded-prefix"] == "/shop"


def test_the_upstream_learns_who_asked_for_what(upstream):
    """Host stays, and the hop that we are is added."""
    _, headers = echoed(
        fetch(
            upstream.url,
            headers=[(b"x-forwarded-for", b"10.0.0.1"), (b"via", b"1.1 edge")],
            scheme="https",
            client=("192.0.2.7", 1),
        )
    )
    assert headers["host"] == headers["x-forwarded-host"] == "example.org"
    assert headers["x-forwarded-for"] == "10.0.0.1, 192.0.2.7"
    assert headers["x-forwarded-proto"] == "https"
    assert headers["via"] == "1.1 edge, 1.1 resilience_mw"
    assert "x-forwarded-prefix" not in headers


FORGED = [
    (b"x-forwarded-proto", b"https"),
    (b"x-forwarded-host", b"evil.example"),
    (b"x-forwarded-ssl", b"on"),
    (b"x_forwarded_proto", b"https"),
    (b"x_forwarded_for", b"10.9.9.9"),
    (b"x-real-ip", b"10.9.9.9"),
    (b"forwarded", b"for=10.9.9.9"),
]


def test_a_client_cannot_speak_for_a_proxy(upstream):
    """Claims of an untrusted peer end here, whichever way they are spelled."""
    _, headers = echoed(fetch(upstream.url, headers=FORGED))
    assert headers["x-forwarded-proto"] == "http"
    assert headers["x-forwarded-host"] == "example.org"
    assert headers["x-forwarded-for"] == "127.0.0.1"
    assert not {name for name, _ in headers.items()} & {
        "x-forwarded-ssl",
        "x_forwarded_proto",
        "x_forwarded_for",
        "x-real-ip",
        "forwarded",
    }


def test_a_trusted_proxy_is_believed(upstream):
    """What the proxy in front of us says of its client goes on."""
    options = {"trusted_proxies": ["127.0.0.0/8"]}
    _, headers = echoed(fetch(upstream.url, headers=FORGED, options=options))
    assert headers["x-forwarded-proto"] == "https"
    assert headers["x-forwarded-host"] == "evil.example"
    assert headers["x-real-ip"] == "10.9.9.9"
    assert "x_forwarded_proto" not in headers


def test_what_is_for_one_hop_ends_here(upstream):
    """Connection, and what it names, but never what bounds the message or says where it is from."""
    _, headers = echoed(
        fetch(
            upstream.url,
            headers=[
                (b"connection", b"keep-alive, X-Secret ,host,x-forwarded-for"),
                (b"connection", b"content-length"),
                (b"x-secret", b"1"),
                (b"keep-alive", b"timeout=5"),
                (b"te", b"trailers"),
                (b"proxy-authorization", b"Basic x"),
                (b"upgrade", b"h2c"),
                (b"expect", b"100-continue"),
                (b"content-length", b"2"),
                (b"cookie", b"c" * 30_000),
            ],
            method="POST",
            body=[{"type": "http.request", "body": b"ab"}],
        )
    )
    assert set(headers) == {
        "host", "cookie", "content-length", "x-forwarded-for", "x-forwarded-host",
        "x-forwarded-proto", "via",
    }  # fmt: skip
    assert headers["x-forwarded-for"] == "127.0.0.1"
    assert len(headers["cookie"]) == 30_000


@pytest.mark.parametrize("bound", [(b"content-length", b"6"), (b"transfer-encoding", b"chunked")])
def test_a_body_is_sent_on_with_its_bound(upstream, bound):
    """By length or in chunks, as it came."""
    body = [
        {"type": "http.request", "body": b"abc", "more_body": True},
        {"type": "http.request", "body": b"", "more_body": True},
        {"type": "http.request", "body": b"def", "more_body": False},
    ]
    report, headers = echoed(fetch(upstream.url, method="POST", headers=[bound], body=body))
    assert report["body"] == 6
    assert headers[bound[0].decode()] == bound[1].decode()


def test_an_http2_body_needs_no_bound(upstream):
    """HTTP/2 has frames; HTTP/1 to the upstream has chunks."""
    body = [{"type": "http.request", "body": b"abc", "more_body": False}]
    facts = {"method": "POST", "http_version": "2"}
    report, headers = echoed(fetch(upstream.url, body=body, **facts))
    assert report["body"] == 3
    assert headers["transfer-encoding"] == "chunked"


def test_responses_come_back_as_they_are(upstream):
    """No redirect is followed, no cookie kept, nothing unpacked; one hop's header ends here."""

    async def main() -> None:
        app = proxy(upstream.url)
        exchange = await Exchange(scope("/various")).through(app)
        start = exchange.starts[0]
        headers = start["headers"]
        assert start["status"] == 302
        assert [value for name, value in headers if name == b"set-cookie"] == [b"a=1", b"b=2"]
        assert dict(headers)[b"location"] == b"/elsewhere"
        assert dict(headers)[b"via"] == b"1.0 cache, 1.1 resilience_mw"
        assert not {b"connection", b"x-one-hop", b"date", b"server"} & set(dict(headers))
        assert gzip.decompress(exchange.text) == b"packed"
        again = await Exchange(scope("/echo")).through(app)
        assert "cookie" not in echoed(again)[1]
        await app.aclose()

    run(main())


@pytest.mark.parametrize("status", [204, 304])
def test_answers_without_a_body(upstream, status):
    """They end at once."""
    exchange = fetch(upstream.url, "/nothing", query_string=b"status=%d" % status)
    assert (exchange.status, exchange.text) == (status, b"")


def test_head_has_the_length_and_not_the_body(upstream):
    """The length says what GET would send."""
    exchange = fetch(upstream.url, "/download", method="HEAD", query_string=b"size=70000&length")
    assert (exchange.status, exchange.text) == (200, b"")
    assert exchange.headers[b"content-length"] == b"70000"


@pytest.mark.parametrize("length", [b"", b"&length"])
def test_large_answers_arrive_whole(upstream, length):
    """With a length, and in chunks."""
    exchange = fetch(upstream.url, "/download", query_string=b"size=3000000" + length)
    assert len(exchange.text) == 3_000_000
    assert (b"content-length" in exchange.headers) == bool(length)
    assert b"transfer-encoding" not in exchange.headers
