"""What a law is told, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol


class Senses(NamedTuple):
    """Cumulative readings of the server a gate runs in, taken by the driver at one moment."""

    at: float
    """When it was read (monotonic seconds)."""
    busy: float
    """Seconds the event loop (or the threads) worked since some fixed moment."""
    turns: int
    """Turns of the event loop since then; 0 where there is no loop."""
    pool_waiting: int = 0
    """Calls that wait for a thread of the framework's pool right now."""


@dataclass(frozen=True, slots=True)
class Window:
    """One sample window of a gate."""

    now: float
    """End of the window (monotonic seconds)."""
    length: float
    """Seconds; longer than the law's window if nothing happened in between."""
    utilization: float
    """Busy share of this window alone, 0 to 1."""
    turns: int
    """Turns of the event loop in this window."""
    inflight: int
    """Requests running at the end of the window, without those whose response streams."""
    peak: int
    """Most requests running at any moment of the window."""
    queued: int
    """Requests waiting in the gate at the end of the window."""
    refused: int
    """Requests refused by the gate in the window."""
    arrivals: int
    """Requests that reached the gate in the window."""
    latencies: Sequence[float]
    """Seconds from admission to the response's start (or the app's end, as the law observes), one
    for each request that ended in the window; without refused and exempt ones."""
    backlog: int
    """Connections waiting to be accepted at the end of the window; 0 where it cannot be known."""
    pool_waiting: int
    """Calls that wait for a thread of the framework's pool."""
    overdue: int = 0
    """How many of the latencies ended at a deadline, without a response."""


class Law(Protocol):
    """Moves a gate's limit, once a window, and may refuse single requests in between."""

    name: str
    window: float
    """Seconds between two calls of `update`."""
    limit: int
    """The limit in force."""
    max_limit: int
    """The greatest limit, streams included."""
    saturated: bool
    """True = a request that finds the gate full is refused at once instead of queued."""
    demand: float | None
    """Requests asked for each one served, from which Retry-After follows; ``None`` = always 1 s."""
    alert: bool
    """True = the gate asks `refuses` for each request."""
    observes: bool
    """True = samples end when the response starts; False = when the app has ended."""

    @property
    def baseline(self) -> float | None:
        """Latency without a queue in seconds, as far as the law knows it."""
        ...

    def update(self, window: Window) -> int:
        """Take one window and return the new limit."""
        ...

    def refuses(self, waited: float, backlog: int) -> str | None:
        """Return why a request that has waited ``waited`` seconds is refused, or ``None``."""
        ...

    def patience(self, now: float) -> float:
        """Return for how many seconds a request may wait in the gate's queue from now on."""
        ...
