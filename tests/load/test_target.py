from __future__ import annotations

import itertools

import pytest

from benchmarks.load import Target, TargetError


@pytest.mark.parametrize(
    ("url", "host", "path"),
    [
        ("http://127.0.0.1:80", "127.0.0.1", "/"),
        ("http://localhost:80/a?b=c", "127.0.0.1", "/a?b=c"),
        ("http://127.8.9.10:80/", "127.8.9.10", "/"),
        ("http://[::1]:80/x", "::1", "/x"),
    ],
)
def test_loopback_urls_are_targets(url, host, path):
    """Every spelling of this machine's own loopback is accepted."""
    target = Target.parse(url)
    assert (target.host, target.port, target.path) == (host, 80, path)


@pytest.mark.parametrize(
    "url",
    [
        "http://10.0.0.1:80/",
        "http://192.168.1.1:80/",
        "http://169.254.1.1:80/",
        "http://0.0.0.0:80/",
        "http://example.com:80/",
        "http://[fe80::1]:80/",
        "http://127.0.0.1.example.com:80/",
        "https://127.0.0.1:80/",
        "http://127.0.0.1/",
        "127.0.0.1:80",
    ],
)
def test_nothing_else_is(url):
    """Another machine, or a URL that is not plain HTTP with a port, is refused in one line."""
    with pytest.raises(TargetError, match=r"^target must [^\n]*$"):
        Target.parse(url)


def test_the_constructor_refuses_too():
    """There is no way round the check by leaving out the URL."""
    with pytest.raises(TargetError, match=r"loopback address, got '10\.1\.2\.3'"):
        Target("10.1.2.3", 80)


def test_request_is_rendered():
    """Method, path, host, headers and body are what was asked for."""
    target = Target("127.0.0.1", 8000, "/p", "POST", {"X-A": "b"}, b"body")
    assert target.request(keep_alive=True) == (
        b"POST /p HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nX-A: b\r\nContent-Length: 4\r\n\r\nbody"
    )
    assert b"\r\nConnection: close\r\n" in target.request(keep_alive=False)


def test_sources_rotate_where_loopback_is_a_network(monkeypatch):
    """On Linux all of 127/8 can be a source; elsewhere, and on IPv6, the system chooses."""
    target = Target("127.0.0.1", 80)
    monkeypatch.setattr("sys.platform", "linux")
    sources = list(itertools.islice(target.sources(), 20))
    assert len(set(sources)) == 16
    assert sources[0] == sources[16] == "127.0.0.1"
    assert next(Target("::1", 80).sources()) is None
    monkeypatch.setattr("sys.platform", "darwin")
    assert next(target.sources()) is None
