"""Guards whose requests are late soon."""

from __future__ import annotations

from resilience_mw.asgi import Guard
from resilience_mw.core import DeadlinePolicy, Gate

from .harness import Exchange

SOON = 0.04


def guarded(app, timeout=SOON, **options):
    """Return a guard with a deadline and a gate, and both policies."""
    deadline, gate = DeadlinePolicy(timeout, receive_timeout=0.0, **options), Gate(1)
    return Guard(app, deadline, gate), deadline, gate


def assert_late(exchange: Exchange) -> None:
    """Check the answer that is given at the deadline."""
    assert (exchange.status, exchange.text) == (504, b"Gateway Timeout")
    assert exchange.headers[b"content-length"] == b"15"
    assert [message["type"] for message in exchange.sent] == [
        "http.response.start",
        "http.response.body",
    ]
