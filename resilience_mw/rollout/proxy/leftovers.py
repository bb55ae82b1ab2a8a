"""Whether a connection may be used for another request."""

from __future__ import annotations

from typing import Any


def has_leftovers(connection: Any) -> bool:
    """Return whether more bytes came with a response than belong to it.

    httpcore would read them as the response to the next request, which may be another client's:
    response splitting. Its h11 connection, which holds them, is no public attribute; where it is
    not found, the answer is yes, since a new connection for each request is slow but safe.

    Args:
        connection: whose response has been read to its end, and is not closed yet.
    """
    try:
        data, _ = connection._connection._h11_state.trailing_data
    except AttributeError:
        return True
    return bool(data)
