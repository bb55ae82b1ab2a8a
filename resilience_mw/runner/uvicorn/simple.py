"""Requests so simple that they can be refused without a parser.

While many are refused, most of what a refusal costs is the parsing of what nobody will serve. A
request that came in one piece, has no body and asks for nothing special is told by one regular
expression; anything else goes to the parser as ever. What passes here is refused or parsed after
all, never served, so that being less strict than a parser harms nobody.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

_SIMPLE = re.compile(
    rb"(GET|HEAD) (/[^ \r\n]*) HTTP/1\.1\r\n"
    rb"((?:"
    # A body, another protocol, a promise, or the end of the connection.
    rb"(?!(?i:content-length|transfer-encoding|upgrade:|expect|connection:(?! ?keep-alive\r)))"
    rb"[^\r\n]+\r\n)*)\r\n"
)


class Fields:
    """The header fields of such a request, as ASGI has them; split when somebody looks."""

    __slots__ = ("_lines",)

    def __init__(self, lines: bytes) -> None:
        self._lines = lines

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        for line in self._lines.split(b"\r\n"):
            name, colon, value = line.partition(b":")
            if colon:
                yield name.lower(), value.strip()


def simple_request(data: bytes, root: str) -> dict[str, Any] | None:
    """Return what policies look at of the scope of a simple request, ``None`` for any other.

    Args:
        data: what was received between two requests.
        root: the mount point (``root_path``).
    """
    match = _SIMPLE.fullmatch(data)
    if match is None:
        return None
    method, target, lines = match.groups()
    raw, _, query = target.partition(b"?")
    path = raw.decode("latin-1")
    return {
        "type": "http",
        "http_version": "1.1",
        "method": method.decode("ascii"),
        "root_path": root,
        "path": root + (unquote(path) if "%" in path else path),
        "query_string": query,
        "headers": Fields(lines),
    }
