"""What a probe asks, read from the head of its request."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

LONGEST_HEAD = 8192
"""Bytes; probes need a few hundred."""

_LINE = re.compile(rb"([A-Z]{1,20}) (?:http://[^/?# ]*)?(/[^ #]*) HTTP/1\.[01]\r?\n")
_END = re.compile(rb"\r?\n\r?\n")
_ACCEPT = re.compile(rb"^accept:[ \t]*(.*?)[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Request:
    """One request without a body.

    Attributes:
        method: in upper case.
        path: decoded, without the query.
        query: as it came.
        accept: the Accept headers, joined.
        alone: whether nothing came after the head.
    """

    method: str
    path: str
    query: str
    accept: str
    alone: bool = True


def read(data: bytes) -> Request | None:
    """Return the request whose head begins ``data``; ``None`` while it is incomplete.

    Raises:
        ValueError: it is none.
    """
    end = _END.search(data)
    if end is None:
        if data and not data[:1].isupper():
            raise ValueError("no HTTP/1 request")  # TLS, whose client would wait for our turn
        return None
    line = _LINE.match(data)
    if line is None:
        raise ValueError("no HTTP/1 request")
    target = line[2].decode("latin-1")
    path, _, query = target.partition("?")
    accept = b", ".join(_ACCEPT.findall(data, line.end() - 1, end.end()))
    alone = end.end() == len(data)
    return Request(line[1].decode(), unquote(path), query, accept.decode("latin-1"), alone)
