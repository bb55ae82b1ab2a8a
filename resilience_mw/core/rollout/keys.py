"""What names the user of a request, where a rule goes by users."""

from __future__ import annotations

import re
from collections.abc import Callable

from ..exchange import Exchange
from .rule import RolloutRule

Key = Callable[[Exchange], str | None]
"""Returns what names the user; ``None`` = it is not known."""

MOST_COOKIES = 16_384
"""Characters of a ``Cookie`` header that are looked at; who sends more is not known. Servers and
proxies allow half of it, or all."""

_BETWEEN = re.compile(r";|,(?=\s*[!#$%&'*+.^_`|~0-9A-Za-z-]+=)")
"""Between two cookies. HTTP/2 clients send them in pieces, which WSGI servers join with commas; so
a comma that a name follows is the end of a value."""


def cookie(exchange: Exchange, name: str) -> str | None:
    """Return the first cookie of that name, as it was sent; ``None`` if there is none, or empty."""
    header = exchange.header("cookie")
    if header is None or name not in header or len(header) > MOST_COOKIES:
        return None
    for pair in _BETWEEN.split(header) if "," in header else header.split(";"):
        key, equals, value = pair.partition("=")
        if equals and key.strip() == name:
            return value.strip() or None
    return None


def user_key(rule: RolloutRule, address: Key) -> Key:
    """Return what finds the user of a request for ``rule``.

    Args:
        rule: one that goes by users.
        address: finds the address of a client.
    """
    if rule.cookie is not None:
        name = rule.cookie
        return lambda exchange: cookie(exchange, name)
    if rule.header is not None:
        header = rule.header
        return lambda exchange: exchange.header(header) or None
    return address
