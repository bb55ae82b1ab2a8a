"""What a guard and its policies say about themselves: frozen, plain numbers, cheap to make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace


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
    """Exponentially smoothed time from admission to the response, in seconds."""
    waited_p50: float | None = None
    waited_p99: float | None = None
    """How long the last few hundred requests that a law looked at had waited, in seconds."""
    baseline: float | None = None
    """Latency without a queue, as far as the law has learned it, in seconds."""
    overloaded: bool = False
    """Whether the law is refusing because of an overload."""
    streams: int = 0
    """Responses that go on for so long that they count as no work; they are among inflight."""
    dry_run: bool = False
    """True = nothing is refused, and `refused` holds what would have been."""
    cutoff: float | None = None
    """Rank from which on requests are refused: 0 to 1 critical, to 2 normal, to 3 sheddable; 2.4 =
    the last six of ten sheddable ones. ``None`` = nobody is refused by rank."""
    priority_errors: int = 0
    """Requests whose class or user is unknown: the callable raised, or returned nonsense."""


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
class CheckResult:
    """What is known of something that the app needs. Times are seconds since 1970."""

    name: str
    passing: bool
    """After `fall` and `rise`; False until it has been asked for the first time."""
    critical: bool
    """Whether readiness depends on it."""
    reason: str
    """Why it fails, in few words for anybody to read; empty while it passes."""
    since: float
    """Since when it passes or fails."""
    observed_at: float | None = None
    """When the last answer came, or its time was up; ``None`` = not asked yet."""
    status: int | None = None
    """The status that the next tier answered with last, where it was one that was asked."""


@dataclass(frozen=True, slots=True)
class HealthSnapshot:
    """State of the lifecycle, probes answered, and the checks behind them."""

    state: str
    probes: int
    ready: bool = False
    """What a readiness probe would be told."""
    checks: tuple[CheckResult, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """State of a whole guard; the single numbers are those of its innermost gate."""

    limit: int | None = None
    inflight: int = 0
    queued: int = 0
    admitted: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    """Refusals by reason, of all policies together."""
    would_refuse: Mapping[str, int] = field(default_factory=dict)
    """Refusals by reason that gates in dry run only counted."""
    elu: float | None = None
    """Utilization of the event loop (or of the threads) in the last window, 0 to 1."""
    smoothed_latency: float | None = None
    waited_p50: float | None = None
    waited_p99: float | None = None
    lag: float | None = None
    """How late the event loop runs its timers, in seconds; ``None`` where there is no loop."""
    websockets: int = 0
    """Open websockets; they hold no request slot."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """What each signal is measured with, once it has been chosen: ``utilization``, ``waited``,
    ``backlog``."""
    policies: tuple[object, ...] = ()
    """One snapshot a policy, outermost first."""

    @property
    def latency(self) -> float | None:
        """The smoothed latency in seconds, under its short name."""
        return self.smoothed_latency


def summarize(
    parts: tuple[object, ...],
    *,
    websockets: int = 0,
    lag: float | None = None,
    sources: Mapping[str, str] | None = None,
) -> Snapshot:
    """Combine the snapshots of a guard's policies, outermost first."""
    gates = [part for part in parts if isinstance(part, GateSnapshot)]
    refused: Counter[str] = Counter()
    would_refuse: Counter[str] = Counter()
    for gate in gates:
        (would_refuse if gate.dry_run else refused).update(gate.refused)
    for part in parts:
        if isinstance(part, DeadlineSnapshot) and part.expired:
            refused["deadline"] += part.expired
    whole = Snapshot(
        refused=dict(refused),
        would_refuse=dict(would_refuse),
        lag=lag,
        websockets=websockets,
        sources=sources or {},
        policies=parts,
    )
    if not gates:
        return whole
    inner = gates[-1]
    return replace(
        whole,
        limit=inner.limit,
        inflight=inner.inflight,
        queued=sum(gate.queued for gate in gates),
        admitted=inner.admitted,
        elu=inner.elu,
        smoothed_latency=inner.smoothed_latency,
        waited_p50=inner.waited_p50,
        waited_p99=inner.waited_p99,
    )
