"""Bad arguments are one line at once, which names them and shows no secret."""

from __future__ import annotations

import pytest

from resilience_mw.exceptions import ConfigError
from resilience_mw.health import DiskCheck, MemoryCheck, RedisCheck, TcpCheck, UpstreamCheck

BAD_URLS = {
    "": "must begin with http://",
    "127.0.0.1:80/status": "must begin with http://",
    "ftp://host/": "must begin with http://",
    "http://": "must name a host",
    "http:///status": "must name a host",
    "http://host:0/": "port must be between 1 and 65535",
    "http://host:99999/": "port must be between 1 and 65535",
    "http://host:http/": "port must be between 1 and 65535",
    "http://[::1/": "must be a URL",
    "http://-host/": "host must be a name or an IP address",
    "http://a..b/": "host must be a name or an IP address",
    f"http://{'ü' * 64}/": "host must be a name or an IP address",
    "http://ho st/": "no blanks or control characters",
    "http://host/\r\nX: y": "no blanks or control characters",
    "http://host/ü": "must be percent-encoded",
    "http://user:secret@host/": "no user name or password",
    "unix:/run/app.sock": "must be unix:/path/of/socket:/page",
    "unix:app.sock:/": "socket must be an absolute path",
    "http+unix://app.sock/": "socket must be an absolute path",
    f"unix:/{'x' * 107}:/": "at most 107 bytes",
}


@pytest.mark.parametrize(("url", "rule"), BAD_URLS.items(), ids=range(len(BAD_URLS)))
def test_bad_urls(url, rule):
    """Each with its rule."""
    with pytest.raises(ConfigError) as refused:
        UpstreamCheck(url)
    message = str(refused.value)
    assert message.startswith("UpstreamCheck ")
    assert rule in message
    assert "secret" not in message
    assert len(message.splitlines()) == 1


def test_a_url_is_text():
    """Nothing else is guessed."""
    with pytest.raises(ConfigError, match="url must be text, got 80"):
        UpstreamCheck(80)  # type: ignore[arg-type]


BAD_OPTIONS = [
    ({"timeout": 0}, "timeout must be > 0"),
    ({"interval": -1}, "interval must be > 0"),
    ({"method": "POST"}, "method must be GET or HEAD"),
    ({"expect": 99}, "expect must be a status"),
    ({"expect": []}, "expect must be a status"),
    ({"expect": "200"}, "expect must be a status"),
    ({"expect": None}, "expect must be a status"),
    ({"headers": ["X: y"]}, "headers must be a mapping"),
    ({"headers": {"X y": "z"}}, "headers must have valid names"),
    ({"headers": {"": "z"}}, "headers must have valid names"),
    ({"headers": {"Host": "z"}}, "must not set Host"),
    ({"headers": {"content-length": "1"}}, "must not set content-length"),
    ({"headers": {"X": "secret\r\nY: z"}}, "X must be printable ASCII"),
    ({"headers": {"X": "sécret"}}, "X must be printable ASCII"),
    ({"headers": {"X": 1}}, "X must be printable ASCII"),
    ({"host": "a/b"}, "host must be a name"),
    ({"host": ""}, "must name a host"),
    ({"host": 7}, "host must be text"),
]


@pytest.mark.parametrize(("options", "rule"), BAD_OPTIONS, ids=range(len(BAD_OPTIONS)))
def test_bad_options(options, rule):
    """Of an upstream check."""
    with pytest.raises(ConfigError) as refused:
        UpstreamCheck("https://localhost/", **options)
    assert rule in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_context_is_one():
    """Not a file name, as for `ca`."""
    with pytest.raises(ConfigError, match="ssl_context must be an SSLContext"):
        UpstreamCheck("https://localhost/", ssl_context="ca.pem")  # type: ignore[arg-type]


@pytest.mark.parametrize("port", [0, 65536, "80", True, None])
def test_bad_ports(port):
    """Of a TCP check."""
    with pytest.raises(ConfigError, match="TcpCheck port must be between 1 and 65535"):
        TcpCheck("localhost", port)


@pytest.mark.parametrize("host", ["", None, "a b", "tcp://a"])
def test_bad_hosts(host):
    """Of a TCP check."""
    with pytest.raises(ConfigError, match="TcpCheck"):
        TcpCheck(host, 80)


@pytest.mark.parametrize("share", [0, -1, 1.01, float("nan"), "0.9", True])
def test_bad_shares_of_memory(share):
    """Above 0, and at most all of it."""
    with pytest.raises(ConfigError, match="MemoryCheck max_used must be"):
        MemoryCheck(share)


@pytest.mark.parametrize("free", [0, -1, float("nan"), "10%", True])
def test_bad_room_on_disks(free):
    """A share, or bytes."""
    with pytest.raises(ConfigError, match="DiskCheck min_free must be"):
        DiskCheck("/", free)


@pytest.mark.parametrize("path", ["", "a\x00b", None, 3])
def test_bad_paths_of_disks(path):
    """Before they are asked for."""
    with pytest.raises(ConfigError, match="DiskCheck path must be a path"):
        DiskCheck(path)


@pytest.mark.parametrize(
    "url", ["localhost", "http://localhost", "redis://:secret@h:port/0", "redis://h?nonsense=1"]
)
def test_bad_urls_of_redis(url):
    """Without the password."""
    with pytest.raises(ConfigError, match="RedisCheck url must be") as refused:
        RedisCheck(url)
    assert "secret" not in str(refused.value)
