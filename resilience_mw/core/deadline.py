"""How long a request may take until its response starts, and until it has been received."""

from __future__ import annotations

import math

from .exchange import Exchange, Reply
from .policy import Decision, Policy
from .snapshot import DeadlineSnapshot

LATE = Reply(504, "Gateway Timeout", reason="deadline")
UNRECEIVED = Reply(408, "Request Timeout", close=True)

LONGEST = 86_400.0
"""Seconds; a deadline header that asks for more than a day is a mistake, not a wish."""

_UNITS = (("ms", 0.001), ("s", 1.0))


class DeadlinePolicy(Policy):
    """Set the deadline; refuse what is late on arrival. The driver enforces the rest.

    Args:
        timeout: seconds from arrival until the response must have started; ``None`` = no limit.
        receive_timeout: seconds until the whole request must have been received; 0 = no limit.
        header: name of a request header that may shorten ``timeout`` (``2.5``, ``2.5s``,
            ``250ms``), never lengthen it.
    """

    deadlines = True

    def __init__(
        self,
        timeout: float | None = 30.0,
        *,
        receive_timeout: float = 30.0,
        header: str | None = None,
    ) -> None:
        self.timeout = timeout
        self.receive_timeout = receive_timeout
        self.header = header
        self.expired = 0
        self.overrun = 0
        self.unreceived = 0
        self.ignored_headers = 0

    def enter(self, exchange: Exchange) -> Decision:
        """Set ``exchange.deadline``; answer 504 if it has passed already."""
        timeout = self.timeout
        if self.header is not None:
            timeout = self._shortened(exchange.header(self.header))
        if timeout is not None:
            deadline = exchange.arrived + timeout - exchange.queue_wait
            if deadline <= (exchange.admitted or exchange.arrived):
                self.expired += 1
                return LATE
            exchange.limit(deadline)
        return None

    def _shortened(self, value: str | None) -> float | None:
        if value is None:
            return self.timeout
        seconds = parse_seconds(value)
        if seconds is None:
            self.ignored_headers += 1
            return self.timeout
        return seconds if self.timeout is None else min(seconds, self.timeout)

    def snapshot(self) -> DeadlineSnapshot:
        """Return the timeout and what it did."""
        return DeadlineSnapshot(
            timeout=self.timeout,
            expired=self.expired,
            overrun=self.overrun,
            unreceived=self.unreceived,
            ignored_headers=self.ignored_headers,
        )


def parse_seconds(value: str) -> float | None:
    """Read ``2.5``, ``2.5s`` or ``250ms``; ``None`` if it is malformed or not in (0, a day]."""
    value = value.strip()
    if not value.isascii() or len(value) > 32 or "_" in value:
        return None
    scale = 1.0
    for unit, factor in _UNITS:
        if value.endswith(unit):
            value, scale = value[: -len(unit)], factor
            break
    try:
        seconds = float(value) * scale
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and 0.0 < seconds <= LONGEST else None
