"""A request as either protocol brings it, and as the upstream gets it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import httpcore

from ...core.exchange import Exchange
from .errors import NO_TUNNEL, NO_WEBSOCKET, BadRequest
from .headers import Fields, Framing, framing, request_fields
from .target import request_target
from .upstream import Upstream


@dataclass(slots=True)
class Incoming:
    """The head of a request; bytes as they came, names of fields in lower case."""

    method: str
    version: str
    """``1.0``, ``1.1``, ``2`` or ``3``."""
    path: bytes
    """Decoded, with the mount point."""
    raw_path: bytes | None
    root: bytes
    query: bytes
    fields: Sequence[tuple[bytes, bytes]]
    exchange: Exchange
    """The same request, for whom it comes from."""
    scheme: str


def check(
    request: Incoming, upstream: Upstream, left: float | None
) -> tuple[bytes, Fields, Framing]:
    """Return target, header and framing of the request to the upstream.

    Args:
        request: what came.
        upstream: where it goes.
        left: seconds until its deadline, or ``None``.

    Raises:
        BadRequest: it is none that may be passed on.
    """
    if request.method == "CONNECT":
        raise BadRequest(NO_TUNNEL)
    if any(name == b"upgrade" and b"websocket" in value.lower() for name, value in request.fields):
        raise BadRequest(NO_WEBSOCKET)
    bounds = framing(request.fields, request.version)
    target = request_target(
        request.method, request.path, request.raw_path, request.root, request.query
    )
    head = request_fields(
        request.fields,
        peer=request.exchange.peer,
        trusted=bool(upstream.trusted) and upstream.trusted.trusts(request.exchange.certain_peer),
        scheme=request.scheme,
        root=request.root,
        authority=upstream.authority,
    )
    if upstream.deadline_header is not None and left is not None:
        head = [field for field in head if field[0] != upstream.deadline_header]
        head.append((upstream.deadline_header, b"%.3f" % max(left, 0.001)))
    return target, head, bounds


def to(upstream: Upstream, target: bytes) -> httpcore.URL:
    """Return where a request goes."""
    return httpcore.URL(
        scheme=upstream.scheme, host=upstream.host, port=upstream.port, target=target
    )
