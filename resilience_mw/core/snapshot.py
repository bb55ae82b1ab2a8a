"""What a guard and its policies say about themselves: frozen, plain numbers, cheap to make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class GateSnapshot:
    """State of one gate. Times are seconds, counts are requests since start."""

    name: str
    limit: int
    """Requests that may run at once; 0 = no limit."""
    inflight: int
    queued: int
    admitted: int
    refused: Mapping[str, int]
    """Refusals by reason."""
    law: str | None = None
    """Name of the law that moves the limit; ``None`` = a fixed limit."""
    elu: float | None = None
    """Utilization of the event loop (or of the threads) in the last window, 0 to 1."""
    smoothed_latency: float | None = None
    """Exponentially smoothed time from admission to the end of a request."""


@dataclass(frozen=True, slots=True)
class DeadlineSnapshot:
    """What the deadlines did, in requests since start."""

    timeout: float | None
    expired: int
    """Answered 504 because no response had started in time."""
    overrun: int
    """Responses that came late because a thread cannot be stopped."""
    unreceived: int
    """Answered 408 because the request was not received in time."""
    ignored_headers: int
    """Deadline headers that were malformed or absurd."""


@dataclass(frozen=True, slots=True)
class HealthSnapshot:
    """State of the lifecycle, and probes answered."""

    state: str
    probes: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """State of a whole guard; the single numbers are those of its innermost gate."""

    limit: int | None = None
    inflight: int = 0
    queued: int = 0
    admitted: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    """Refusals by reason, of all policies together."""
    elu: float | None = None
    smoothed_latency: float | None = None
    websockets: int = 0
    """Open websockets; they hold no request slot."""
    policies: tuple[object, ...] = ()
    """One snapshot a policy, outermost first."""

    @property
    def latency(self) -> float | None:
        """The smoothed latency in seconds, under its short name."""
        return self.smoothed_latency


def summarize(parts: tuple[object, ...], websockets: int) -> Snapshot:
    """Combine the snapshots of a guard's policies, outermost first."""
    gates = [part for part in parts if isinstance(part, GateSnapshot)]
    refused: dict[str, int] = {}
    for gate in gates:
        for reason, count in gate.refused.items():
            refused[reason] = refused.get(reason, 0) + count
    for part in parts:
        if isinstance(part, DeadlineSnapshot) and part.expired:
            refused["deadline"] = refused.get("deadline", 0) + part.expired
    if not gates:
        return Snapshot(refused=refused, websockets=websockets, policies=parts)
    inner = gates[-1]
    return Snapshot(
        limit=inner.limit,
        inflight=inner.inflight,
        queued=sum(gate.queued for gate in gates),
        admitted=inner.admitted,
        refused=refused,
        elu=inner.elu,
        smoothed_latency=inner.smoothed_latency,
        websockets=websockets,
        policies=parts,
    )
