"""Where a request comes from, behind proxies that we know."""

from __future__ import annotations

import ipaddress
import re

from ..core.exchange import Exchange
from ..signals.proxies import TrustedProxies

_TELLING = ("x-forwarded-for", "forwarded", "x-real-ip")
"""Headers from which servers and middlewares take the address of a client."""

_BETWEEN = re.compile(r'[,;="\s]+')


class Clients:
    """Finds the address of a client.

    Args:
        proxies: whose `X-Forwarded-For` counts. If nobody's does, the address is what the server
            tells, which may have listened to proxies itself.
    """

    def __init__(self, proxies: TrustedProxies) -> None:
        self._proxies = proxies
        self._everybody = proxies.trusts("*")

    def trusted(self, exchange: Exchange) -> bool:
        """Return whether whoever is connected is one of the proxies.

        Where the socket is out of reach a server or middleware that believes everybody's
        `X-Forwarded-For` may have made any client look like one: an address that such a header
        names is nobody's.
        """
        peer = exchange.peer
        if not self._proxies or not self._proxies.trusts(peer):
            return False
        if self._everybody or exchange.peer_is_seen or peer is None:
            return True
        return not _named(exchange, peer)

    def address(self, exchange: Exchange) -> str | None:
        """Return the address nearest to the client that a proxy of ours vouches for."""
        if not self._proxies:
            return _canonical(exchange.client)
        address = exchange.peer
        if not self._proxies.trusts(address):
            return _canonical(address)
        # Each proxy adds who was connected to it: what the client may have made up is further left.
        for told in reversed((exchange.header("x-forwarded-for") or "").split(",")):
            hop = _address(told)
            if hop is None:
                break
            address = hop
            if not self._proxies.trusts(hop):
                break
        return address


def _canonical(address: str | None) -> str | None:
    """Return the form in which every server knows an address, whatever its socket calls it."""
    return address if address is None or ":" not in address else _address(address) or address


def _named(exchange: Exchange, peer: str) -> bool:
    """Whether a header that proxies send names the address of ``peer``."""
    wanted = _address(peer)
    told = (exchange.header(name) or "" for name in _TELLING)
    return any(_address(word) == wanted for text in told for word in _BETWEEN.split(text))


def _address(text: str) -> str | None:
    """Return an address in its one canonical form, without a port; ``None`` if it is none."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(address)
