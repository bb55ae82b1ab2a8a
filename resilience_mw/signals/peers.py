"""Who is connected, where a server or a middleware may have taken the address out of a header."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Any

NOBODY = "?"
"""No address, and in no network."""

_TELLING = ("x-forwarded-for", "forwarded", "x-real-ip")
"""Headers from which servers and middlewares take the address of a client."""

_BETWEEN = re.compile(r'[,;="\s]+')


def peer_address(sock: Any, told: str | None) -> str | None:
    """Return the address of whoever is connected to us, `None` for a Unix socket.

    The protocol's own field names the client where a proxy-header middleware runs outside of us,
    so it counts only when the socket is out of reach.
    """
    if sock is None:
        return told
    try:
        peer = sock.getpeername()
    except (OSError, AttributeError, TypeError, ValueError):
        return "unknown"
    return str(peer[0]) if isinstance(peer, tuple) else None


def certain_peer(sock: Any, told: str | None, header: Callable[[str], str | None]) -> str | None:
    """Return the address of whoever is connected, or `NOBODY` if the client may have written it.

    Where the socket is out of reach a server or middleware that believes everybody's
    `X-Forwarded-For` may have made any client look like one of our own: an address that such a
    header names is nobody's.

    Args:
        sock: the connection's, ``None`` where it is out of reach.
        told: the address that the server tells.
        header: returns the value of a request header.
    """
    peer = peer_address(sock, told)
    if peer is None or sock is not None:
        return peer
    wanted = canonical(peer)
    values = (header(name) or "" for name in _TELLING)
    named = any(canonical(word) == wanted for value in values for word in _BETWEEN.split(value))
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
