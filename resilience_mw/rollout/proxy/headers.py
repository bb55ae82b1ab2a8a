"""What of a message's head goes on to the next hop, and what ends here.

Header fields for one hop (RFC 9110 section 7.6.1) end here, and so does every claim about the
client that we cannot vouch for. What two servers might read in two ways, the root of request
smuggling (RFC 9112 section 11.2), is refused rather than repaired.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from .errors import LOOP, BadRequest

Fields = list[tuple[bytes, bytes]]

VIA = b"1.1 resilience_mw"
MOST_HOPS = 5
"""So many proxies of ours in a row are one that leads to itself."""

_ONE_HOP = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    )
)
_FRAMING = frozenset((b"host", b"content-length"))
# A client may name what it likes in Connection: it must not take away what gives the message its
# bounds, nor make us forget where it came from.

_ADDED = frozenset((b"x-forwarded-for", b"via", b"expect"))
# We say the first two ourselves; the server in front of us has answered the third already.

_CLAIMS = (b"x-forwarded-", b"x-real-ip", b"forwarded")
# Apps and servers believe these of us; some servers even where a blank stands for the hyphen's
# underscore, as CGI names have it.

_OF_THE_SERVER = frozenset((b"date", b"server"))
# The server that sends the response adds its own.

_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VALUE = re.compile(rb"[^\x00\r\n]*")
_HOST = re.compile(rb"[A-Za-z0-9._~%!$&'()*+,;=:\[\]-]*")
_DIGITS = re.compile(rb"[0-9]{1,18}")


class Framing:
    """How the body of a request is bounded: `length` bytes, `chunked`, or neither: there is none"""

    __slots__ = ("chunked", "length")

    def __init__(self, length: int | None, chunked: bool) -> None:
        self.length = length
        self.chunked = chunked


def framing(fields: Iterable[tuple[bytes, bytes]], version: str) -> Framing:
    """Return how the request's body is bounded.

    Raises:
        BadRequest: there are two bounds, or one that is none.
    """
    lengths = [value for name, value in fields if name == b"content-length"]
    codings = [value for name, value in fields if name == b"transfer-encoding"]
    if len(lengths) + len(codings) > 1:
        raise BadRequest
    if codings:
        if codings[0].lower() != b"chunked" or version == "1.0":
            raise BadRequest
        return Framing(None, True)
    if not lengths:
        return Framing(None, False)
    if _DIGITS.fullmatch(lengths[0]) is None:
        raise BadRequest
    return Framing(int(lengths[0]), False)


def request_fields(
    fields: Sequence[tuple[bytes, bytes]],
    *,
    peer: str | None,
    trusted: bool,
    scheme: str,
    root: bytes,
    authority: bytes,
) -> Fields:
    """Return the header of the request to the upstream, without what bounds its body.

    Args:
        fields: names in lower case.
        peer: the address that the request came from.
        trusted: whether the peer may tell which host and scheme its own client asked for.
        scheme: ``http`` or ``https``, as the server sees it.
        root: the mount point, which the target does not have.
        authority: the Host of a request that has none (HTTP/1.0).

    Raises:
        BadRequest: a name or value that is none, or not exactly one Host.
    """
    if any(_NAME.fullmatch(name) is None or _VALUE.fullmatch(value) is None
           for name, value in fields):  # fmt: skip
        raise BadRequest
    dropped = _ONE_HOP | (_named(fields) - _FRAMING) | _ADDED
    kept: Fields = []
    hosts: list[bytes] = []
    addresses: list[bytes] = []
    passed: list[bytes] = []
    told: set[bytes] = set()
    for name, value in fields:
        if name == b"host":
            hosts.append(value)
        elif name == b"x-forwarded-for":
            addresses.append(value)
        elif name == b"via":
            passed.append(value)
        elif name == b"content-length" or name in dropped:
            continue
        elif (canonical := name.replace(b"_", b"-")).startswith(_CLAIMS):
            if trusted and canonical == name:
                told.add(name)
                kept.append((name, value))
        else:
            kept.append((name, value))
    if len(hosts) > 1 or _HOST.fullmatch(host := (hosts or [authority])[0]) is None:
        raise BadRequest
    if sum(value.count(b" resilience_mw") for value in passed) >= MOST_HOPS:
        raise BadRequest(LOOP)
    head: Fields = [(b"host", host)]
    addresses.append((peer or "unknown").encode("latin-1", "replace"))
    claims = [
        (b"x-forwarded-proto", scheme.encode()),
        (b"x-forwarded-host", host),
        (b"x-forwarded-prefix", root),
    ]
    kept += [(name, value) for name, value in claims if name not in told and value]
    kept.append((b"x-forwarded-for", b", ".join(addresses)))
    kept.append((b"via", b", ".join((*passed, VIA))))
    return head + kept


def response_fields(status: int, fields: Sequence[tuple[bytes, bytes]]) -> Fields:
    """Return the header of the response to the client, names in lower case."""
    lowered = [(name.lower(), value) for name, value in fields]
    dropped = _ONE_HOP | (_named(lowered) - _FRAMING) | _OF_THE_SERVER
    if status == 204 or any(name == b"transfer-encoding" for name, _ in lowered):
        dropped |= {b"content-length"}  # it was not what bounded the body
    kept = [(name, value) for name, value in lowered if name not in dropped and name != b"via"]
    passed = [value for name, value in lowered if name == b"via"]
    kept.append((b"via", b", ".join((*passed, VIA))))
    return kept


def _named(fields: Sequence[tuple[bytes, bytes]]) -> frozenset[bytes]:
    """Return what Connection names."""
    return frozenset(
        token.strip().lower()
        for name, value in fields
        if name == b"connection"
        for token in value.split(b",")
    )
