"""What a proxy takes, and what it says to the rest."""

from __future__ import annotations

import ssl
import subprocess
import sys
from typing import Any

import pytest

from resilience_mw import ConfigError
from resilience_mw.rollout.proxy import asgi, wsgi
from resilience_mw.rollout.proxy.upstream import upstream
from tests.asgi.harness import Exchange, run

WRONG = [
    ("", {}, "url"),
    ("127.0.0.1:80", {}, "url"),
    ("ftp://a", {}, "url"),
    ("http://", {}, "url"),
    ("http://a:port", {}, "url"),
    ("http://a:0", {}, "url"),
    ("http://a:99999", {}, "url"),
    ("http://a/path", {}, "url"),
    ("http://a?query", {}, "url"),
    ("http://user:password@a", {}, "url"),
    ("http://[::1", {}, "url"),
    (None, {}, "url"),
    ("http://a", {"timeout": 0}, "timeout"),
    ("http://a", {"timeout": None}, "timeout"),
    ("http://a", {"timeout": True}, "timeout"),
    ("http://a", {"connect_timeout": float("inf")}, "connect_timeout"),
    ("http://a", {"idle_timeout": -1}, "idle_timeout"),
    ("http://a", {"keep_alive": "1"}, "keep_alive"),
    ("http://a", {"keep_alive": -1}, "keep_alive"),
    ("http://a", {"max_connections": 0}, "max_connections"),
    ("http://a", {"max_connections": 1.5}, "max_connections"),
    ("http://a", {"verify": False}, "verify"),
    ("http://a", {"trusted_proxies": ["a.example"]}, "trusted_proxies"),
    ("http://a", {"deadline_header": "a b"}, "deadline_header"),
    ("http://a", {"deadline_header": 1}, "deadline_header"),
]


@pytest.mark.parametrize("proxy", [asgi.proxy, wsgi.proxy], ids=["asgi", "wsgi"])
@pytest.mark.parametrize(("url", "options", "name"), WRONG, ids=str)
def test_a_wrong_value_is_named(proxy, url, options, name):
    """At the start, in one line."""
    with pytest.raises(ConfigError) as caught:
        proxy(url, **options)
    assert str(caught.value).startswith(f"{name} must be ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "authority"),
    [
        ("http://a", b"a"),
        ("https://a/", b"a"),
        ("http://A.example:8080", b"a.example:8080"),
        ("https://a:80", b"a:80"),
        ("http://[::1]:8080", b"[::1]:8080"),
        ("http://b\u00fccher.example", b"xn--bcher-kva.example"),
    ],
)
def test_where_it_goes(url, authority):
    """As a Host header has it, for requests without one."""
    assert upstream(url).authority == authority


def test_off_is_none_and_zero():
    """Where waiting for ever, or keeping nothing, makes sense."""
    options: dict[str, Any] = {"idle_timeout": None, "keep_alive": 0}
    options["verify"] = ssl.create_default_context()
    assert upstream("https://a", **options).idle_timeout is None


def test_the_lifespan_is_answered():
    """Its end closes the connections; whatever else ASGI will bring passes without a word."""

    async def main() -> None:
        app = asgi.proxy("http://127.0.0.1:9")
        messages = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]
        exchange = await Exchange({"type": "lifespan"}, messages).through(app)
        assert [message["type"] for message in exchange.sent] == [
            "lifespan.startup.complete",
            "lifespan.shutdown.complete",
        ]
        assert (await Exchange({"type": "news"}).through(app)).sent == []

    run(main())


SCRIPT = """
import sys
import resilience_mw, resilience_mw.asgi, resilience_mw.wsgi, resilience_mw.rollout.proxy
assert not {"httpx", "httpcore", "h11"} & set(sys.modules), sys.modules
sys.modules["httpcore"] = None
try:
    from resilience_mw.rollout.proxy.%s import proxy
    proxy("http://127.0.0.1:9")
except resilience_mw.ConfigError as error:
    print(error)
"""


@pytest.mark.parametrize("interface", ["asgi", "wsgi"])
def test_without_httpx_one_line_says_what_to_install(interface):
    """And nobody else has to load it."""
    command = [sys.executable, "-c", SCRIPT % interface]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert "pip install 'resilience-mw[proxy]'" in done.stdout
