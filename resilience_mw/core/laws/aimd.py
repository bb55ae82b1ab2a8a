"""Additive increase, multiplicative decrease on event-loop utilization.

The law of the HTTP layer of ``@lazarv/react-server``, re-created exactly:
each window, with u = utilization of that window alone,

    u >= elu_max:  if inflight >= limit / 2:  limit = max(min_limit, floor(0.9 * limit))
    otherwise:     limit = min(max_limit, limit + max(1, ceil(sqrt(limit))))
"""

from __future__ import annotations

import math

from .base import Window


class AIMD:
    """The Node law. It cannot see work that never leaves more than one request in flight.

    Args:
        initial_limit, min_limit, max_limit: requests.
        elu_max: utilization from which the limit shrinks and a full gate refuses, 0 to 1.
        window: seconds between two updates.
        queue_timeout: seconds a request may wait in the gate.
    """

    name = "aimd"
    alert = False
    observes = False
    demand: float | None = None
    baseline: float | None = None

    def __init__(
        self,
        *,
        initial_limit: int = 1000,
        min_limit: int = 1,
        max_limit: int = 1000,
        elu_max: float = 0.95,
        window: float = 1.0,
        queue_timeout: float = 5.0,
    ) -> None:
        self.min_limit = min_limit
        self.max_limit = max_limit
        self.elu_max = elu_max
        self.window = window
        self.queue_timeout = queue_timeout
        self.limit = min(max_limit, initial_limit)
        self.saturated = False

    def update(self, window: Window) -> int:
        """Take one window and return the new limit."""
        self.saturated = window.utilization > self.elu_max
        if window.utilization < self.elu_max:
            # A worker that slept through several windows grows as if it had been woken for each.
            for _ in range(min(64, max(1, int(window.length / self.window)))):
                if self.limit >= self.max_limit:
                    break
                grown = self.limit + max(1, math.ceil(math.sqrt(self.limit)))
                self.limit = min(self.max_limit, grown)
        elif window.inflight >= self.limit / 2:
            self.limit = max(self.min_limit, math.floor(0.9 * self.limit))
        return self.limit

    def refuses(self, waited: float, backlog: int) -> str | None:
        """Never: this law acts on the limit alone."""
        return None

    def patience(self, now: float) -> float:
        """Return the fixed queue timeout in seconds."""
        return self.queue_timeout
