"""Who is connected, where a server or a middleware may have taken the address out of a header."""

from __future__ import annotations

import ipaddress
import re

from ..core.exchange import Exchange

NOBODY = "?"
"""No address, and in no network."""

_TELLING = ("x-forwarded-for", "forwarded", "x-real-ip")
"""Headers from which servers and middlewares take the address of a client."""

_BETWEEN = re.compile(r'[,;="\s]+')


def certain_peer(exchange: Exchange) -> str | None:
    """Return the address of whoever is connected, or `NOBODY` if the client may have written it.

    Where the socket is out of reach a server or middleware that believes everybody's
    `X-Forwarded-For` may have made any client look like one of our own: an address that such a
    header names is nobody's.
    """
    peer = exchange.peer
    if peer is None or exchange.peer_is_seen:
        return peer
    wanted = canonical(peer)
    told = (exchange.header(name) or "" for name in _TELLING)
    named = any(canonical(word) == wanted for text in told for word in _BETWEEN.split(text))
    return NOBODY if named else peer


def canonical(text: str) -> str | None:
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
