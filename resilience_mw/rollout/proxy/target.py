"""The request target that the upstream sees: as the client wrote it, below our mount point."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote_to_bytes

from .errors import BadRequest

_FORBIDDEN = re.compile(rb"[\x00-\x20\x7f#]")
_NOT_ASCII = re.compile(rb"[\x80-\xff]")
_SAFE = "/:@!$&'()*+,;=~-._"


def request_target(method: str, path: bytes, raw: bytes | None, root: bytes, query: bytes) -> bytes:
    """Return the target of the request line.

    Nothing is normalised: ``//``, ``..`` and ``%2e`` mean to the upstream what they meant to us.

    Args:
        method: only OPTIONS may ask for ``*``.
        path: the decoded path, with the mount point.
        raw: the path as it came, if the server tells; used only if it still says the same as
            `path`, which a middleware may have changed.
        root: the decoded mount point, which the upstream does not see.
        query: without the question mark.

    Raises:
        BadRequest: it is no path, or has characters that end a request line.
    """
    if path == b"*" and method == "OPTIONS":
        return b"*"
    below = path
    if root and path.startswith(root) and path[len(root) : len(root) + 1] in (b"/", b""):
        below = path[len(root) :] or b"/"
    if raw is not None:
        raw = raw.partition(b"?")[0]
        if below is not path and raw.startswith(root):
            raw = raw[len(root) :] or b"/"
    if raw is None or _text(unquote_to_bytes(raw)) != _text(below):
        raw = quote(below, safe=_SAFE).encode()
    target = raw + b"?" + query if query else raw
    if not target.startswith(b"/") or _FORBIDDEN.search(target):
        raise BadRequest
    return _NOT_ASCII.sub(lambda found: b"%%%02X" % ord(found[0]), target)


def _text(path: bytes) -> str:
    # What is no UTF-8 has been replaced in ASGI's path, and so cannot be compared.
    return path.decode("utf-8", "replace")
