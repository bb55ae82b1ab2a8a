"""Who is connected, where the socket is out of reach."""

from __future__ import annotations

import pytest

from resilience_mw.asgi.exchange import ASGIExchange
from resilience_mw.signals.peers import NOBODY
from resilience_mw.signals.proxies import TrustedProxies
from resilience_mw.wsgi.exchange import WSGIExchange


async def send(message):
    """Stand for a server whose sockets nobody can reach."""


def asgi(client, headers):
    """Return a request from ``client`` under ASGI."""
    exchange = ASGIExchange()
    exchange.server_send = send
    pairs = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    exchange.scope = {"type": "http", "client": client and (client, 1), "headers": pairs}
    return exchange


def wsgi(client, headers):
    """Return a request from ``client`` under WSGI."""
    exchange = WSGIExchange()
    named = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()}
    exchange.environ = {"REMOTE_ADDR": client or "", **named}
    return exchange


@pytest.mark.parametrize("request_from", [asgi, wsgi])
@pytest.mark.parametrize(
    "headers",
    [
        {"X-Forwarded-For": "10.0.0.9"},
        {"X-Forwarded-For": "203.0.113.7, 10.0.0.9"},
        {"X-Real-IP": "10.0.0.9"},
        {"Forwarded": 'for="10.0.0.9:4711";proto=https'},
        {"X-Forwarded-For": "::ffff:10.0.0.9"},
    ],
    ids=str,
)
def test_an_address_that_the_client_may_have_written_is_nobodys(request_from, headers):
    """A server that believes everybody's header would make it one of our own proxies."""
    exchange = request_from("10.0.0.9", headers)
    assert exchange.certain_peer == NOBODY
    assert not TrustedProxies(["10.0.0.0/8"]).trusts(exchange.certain_peer)


@pytest.mark.parametrize("request_from", [asgi, wsgi])
@pytest.mark.parametrize("headers", [{}, {"X-Forwarded-For": "203.0.113.7"}], ids=str)
def test_a_proxy_that_names_others_is_believed(request_from, headers):
    """Its own address is in none of its headers."""
    assert request_from("10.0.0.9", headers).certain_peer == "10.0.0.9"
