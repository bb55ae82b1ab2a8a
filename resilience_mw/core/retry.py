"""When a refused client should come back."""

from __future__ import annotations

from collections.abc import Callable

LONGEST = 30
"""Seconds: longer than that, nobody knows what the load will be."""


def retry_after(demand: float, drain: float, random: Callable[[], float]) -> int:
    """Return a Retry-After in whole seconds, from 1 to `LONGEST`.

    Whoever is refused and comes back is a request more. Where k are asked for each one served,
    k - 1 come back, and they find room only if they spread over about as many times the second
    in which they came; the queue that stands must be worked off first. So

        1 + drain + U (2 (k - 1) + 1),  U uniform in [0, 1)

    rounded down: k or so on average, and not the same for everybody.

    Args:
        demand: requests asked for each one served, at least 1.
        drain: seconds of work that wait in the queue.
        random: returns a number in [0, 1).
    """
    excess = 2.0 * max(0.0, demand - 1.0)
    return int(max(1.0, min(LONGEST, 1.0 + drain + random() * (excess + 1.0))))
