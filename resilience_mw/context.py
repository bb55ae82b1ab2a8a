"""The request that is being handled here, for code deep inside a view."""

from __future__ import annotations

import time
from contextvars import ContextVar

from .core.exchange import Exchange

current: ContextVar[Exchange | None] = ContextVar("resilience_mw.exchange", default=None)
"""Set by the drivers, which never reset it: a request has a context of its own on every ASGI
server, and an exchange that is done counts as none. Copied into thread pools by the frameworks."""


def remaining() -> float | None:
    """Return the seconds left until this request's deadline.

    Negative = late. ``None`` = there is no deadline, or no request is being handled here.
    Pass it on as the timeout of the calls that a view makes.
    """
    exchange = current.get()
    while exchange is not None and exchange.done:
        exchange = exchange.outer  # a guard further in has ended, this one has not
    if exchange is None or exchange.deadline is None:
        return None
    return exchange.deadline - time.monotonic()
