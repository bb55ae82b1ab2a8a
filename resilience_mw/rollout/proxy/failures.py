"""What httpcore's errors mean to the client, as long as nothing has been answered."""

from __future__ import annotations

import httpcore

from ...core.exchange import Reply
from .errors import BAD_GATEWAY, BAD_REQUEST, NO_CONNECTION, TIMEOUT

FAILURES = (
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.TimeoutException,
)


def reply_for(error: Exception) -> Reply:
    """Return the answer to a request that ended with ``error``."""
    if isinstance(error, httpcore.PoolTimeout):
        return NO_CONNECTION
    if isinstance(error, httpcore.TimeoutException):
        return TIMEOUT
    if isinstance(error, httpcore.LocalProtocolError):
        return BAD_REQUEST  # its body is not what its header says
    return BAD_GATEWAY


def is_outage(error: Exception) -> bool:
    """Whether the error says that nobody is there; a slow answer does not."""
    return isinstance(error, (httpcore.ConnectTimeout, httpcore.NetworkError))


def check_status(response: httpcore.Response) -> None:
    """Refuse a status that no server knows, and some fall over: RFC 9110 has 100 to 599.

    Raises:
        RemoteProtocolError: it is none of a final response.
    """
    if not 200 <= response.status < 600:
        raise httpcore.RemoteProtocolError(f"no response has the status {response.status}")


def words(error: Exception) -> str:
    """Return the error in a few words."""
    return str(error) or type(error).__name__
