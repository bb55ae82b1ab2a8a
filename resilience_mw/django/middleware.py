"""`ResilienceMiddleware`, for the ``MIDDLEWARE`` setting."""

from __future__ import annotations

import weakref

from django.core.exceptions import MiddlewareNotUsed

from ..core.snapshot import Snapshot
from . import conf
from .guard import GetResponse, Guard

_newest: weakref.ref[Guard] | None = None


class ResilienceMiddleware(Guard):
    """Probes, deadlines, a fixed limit and an adaptive limit, as ``RESILIENCE`` says.

    Put it first in ``MIDDLEWARE``: what stands before it runs for refused requests, too.

    Under ASGI, the deadline answers 504 although the view still runs. Under WSGI a thread cannot
    be stopped: `resilience_mw.remaining` tells the view how much time it has, and a late response
    is counted.

    Args:
        get_response: the next middleware, or the view.

    Raises:
        MiddlewareNotUsed: limit, backpressure and deadline are all off. Probes are then left to
            the project as well.
        ConfigError: an option is unknown or its value breaks a rule.
    """

    def __init__(self, get_response: GetResponse) -> None:
        policies = conf.enforced(conf.options())
        if not policies:
            raise MiddlewareNotUsed("limit, backpressure and deadline are all off")
        super().__init__(get_response, *policies)
        global _newest
        _newest = weakref.ref(self)


def snapshot() -> Snapshot | None:
    """Return the state of this process's `ResilienceMiddleware`, the newest if there are several.

    ``None`` = there is none. Where the application is wrapped as well, ask the wrapper: it is the
    one that counts.
    """
    guard = _guard()
    return None if guard is None else guard.snapshot()


def drain() -> None:
    """Turn readiness to 503 and refuse whoever waits; requests are still served."""
    guard = _guard()
    if guard is not None:
        guard.drain()


def _guard() -> Guard | None:
    return None if _newest is None else _newest()
