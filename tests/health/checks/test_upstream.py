"""The next tier is asked on a fresh connection, and judged by its whole answer in time."""

from __future__ import annotations

import socket
import time

import pytest

from benchmarks.process import free_port
from resilience_mw.health import UpstreamCheck
from tests.health.checks.asking import PASSED, ask
from tests.health.checks.peer import OK, status


def test_passes_on_200(peer):
    """And keeps the status."""
    upstream = peer()
    check = UpstreamCheck(upstream.url(), timeout=10)
    assert check.status is None
    assert ask(check) == PASSED
    assert check.status == 200


def test_asks_what_the_url_says(peer):
    """Path and query as they are written, the port in Host, and no kept connection."""
    upstream = peer()
    assert ask(UpstreamCheck(upstream.url("/a%20b?x=1&y#part"), timeout=10)) == PASSED
    lines = upstream.heads[0].split(b"\r\n")
    assert lines[0] == b"GET /a%20b?x=1&y HTTP/1.1"
    assert f"Host: {upstream.address}".encode() in lines
    assert b"Connection: close" in lines


def test_every_ask_is_a_fresh_connection(peer):
    """Even from a peer that would keep it."""
    upstream = peer()
    check = UpstreamCheck(upstream.url(), timeout=10)
    assert [ask(check) for _ in range(5)] == [PASSED] * 5
    assert upstream.accepted == 5


@pytest.mark.parametrize("code", [201, 204, 301, 302, 304, 404, 429, 500, 503])
def test_another_status_fails(peer, code):
    """With itself as the reason."""
    check = UpstreamCheck(peer(status(code)).url(), timeout=10)
    assert ask(check) == f"status {code}"
    assert check.status == code


def test_redirects_are_not_followed(peer):
    """Not even to somebody who would pass."""
    elsewhere = peer()
    check = UpstreamCheck(peer(status(302, f"Location: {elsewhere.url()}")).url(), timeout=10)
    assert ask(check) == "status 302"
    assert elsewhere.accepted == 0


@pytest.mark.parametrize(
    ("expect", "code", "passes"),
    [(204, 204, True), ([200, 401], 401, True), (range(200, 300), 206, True), (204, 200, False)],
)
def test_the_expected_status_can_be_chosen(peer, expect, code, passes):
    """One, several or a range."""
    check = UpstreamCheck(peer(status(code)).url(), timeout=10, expect=expect)
    assert (ask(check) == PASSED) is passes


def test_head_has_no_body(peer):
    """So none is waited for."""
    upstream = peer(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    assert ask(UpstreamCheck(upstream.url(), timeout=10, method="HEAD")) == PASSED
    assert upstream.heads[0].startswith(b"HEAD /status ")


def test_headers_and_host_can_be_set(peer):
    """A header of the same name replaces ours, whatever its case."""
    upstream = peer()
    headers = {"authorization": "Bearer x", "user-agent": "balancer"}
    check = UpstreamCheck(upstream.url(), timeout=10, host="shop.example", headers=headers)
    assert ask(check) == PASSED
    lines = upstream.heads[0].lower().split(b"\r\n")
    assert {b"host: shop.example", b"authorization: bearer x"} < set(lines)
    assert [line for line in lines if line.startswith(b"user-agent:")] == [b"user-agent: balancer"]


def test_proxies_of_the_environment_are_not_used(peer, monkeypatch):
    """A check that goes through a proxy tells about the proxy."""
    proxy = peer(status(502))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, proxy.url(""))
    assert ask(UpstreamCheck(peer().url(), timeout=10)) == PASSED
    assert proxy.accepted == 0


def test_names_are_looked_up(peer):
    """In a thread: the loop goes on."""
    upstream = peer()
    assert ask(UpstreamCheck(f"http://localhost:{upstream.port}/", timeout=10)) == PASSED


def test_ipv6(peer):
    """In brackets in the URL and in Host."""
    try:
        upstream = peer(host="::1")
    except OSError:
        pytest.skip("no IPv6 here")
    assert ask(UpstreamCheck(upstream.url(), timeout=10)) == PASSED
    assert f"\r\nHost: [::1]:{upstream.port}\r\n".encode() in upstream.heads[0]


@pytest.mark.parametrize("form", ["unix:{path}:/status?x", "http+unix://{quoted}/status?x"])
def test_unix_sockets(peer, tmp_path, form):
    """In nginx's way of writing them, and in that of URLs."""
    path = tmp_path / "app.sock"
    upstream = peer(path=path)
    url = form.format(path=path, quoted=str(path).replace("/", "%2F"))
    assert ask(UpstreamCheck(url, timeout=10)) == PASSED
    assert upstream.heads[0].startswith(b"GET /status?x HTTP/1.1\r\nHost: localhost\r\n")


def test_no_unix_socket(tmp_path):
    """Is not the same as nobody behind it."""
    path = tmp_path / "app.sock"
    check = UpstreamCheck(f"unix:{path}:/", timeout=10)
    assert ask(check) == "no socket"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    assert ask(check) == "refused"


def test_nobody_listens():
    """And the status of before is forgotten."""
    check = UpstreamCheck(f"http://127.0.0.1:{free_port()}/", timeout=10)
    check.status = 200
    assert ask(check) == "refused"
    assert check.status is None


def test_no_such_name():
    """The reason does not repeat the name."""
    assert ask(UpstreamCheck("http://nobody.invalid/", timeout=30)) == "dns"


def test_silence_is_cut_at_the_timeout(peer):
    """A peer that accepts and says nothing."""
    check = UpstreamCheck(peer(lambda connection, _: connection.recv(1)).url(), timeout=0.1)
    started = time.monotonic()
    assert ask(check) == "timeout"
    assert time.monotonic() - started < 5.0


def test_a_trickle_is_cut_too(peer):
    """The timeout is for the whole answer, not for each byte of it."""

    def trickle(connection: socket.socket, _: bytes) -> None:
        for byte in OK * 20:
            connection.sendall(bytes([byte]))
            time.sleep(0.02)

    started = time.monotonic()
    assert ask(UpstreamCheck(peer(trickle).url(), timeout=0.2)) == "timeout"
    assert time.monotonic() - started < 5.0


def test_recovers(peer):
    """Nothing of a failure is kept."""
    upstream = peer(status(500))
    check = UpstreamCheck(upstream.url(), timeout=10)
    assert ask(check) == "status 500"
    upstream.behaviour = OK
    assert ask(check) == PASSED
    assert check.status == 200
