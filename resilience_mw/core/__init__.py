"""The decisions, without I/O.

Nothing below this package opens a socket, reads a clock, starts a thread or knows a framework:
time comes in as ``now`` (seconds on a monotonic clock), everything else through an `Exchange`.
One driver a protocol does the rest: `resilience_mw.asgi`, `resilience_mw.wsgi` and
`resilience_mw.django`.
"""

from __future__ import annotations

from .adaptive import AdaptiveGate
from .deadline import DeadlinePolicy
from .exchange import SKIP, Exchange, Reply
from .gate import Gate
from .health import HealthPolicy
from .laws import AIMD, Law, Senses, Window
from .lifecycle import Lifecycle, State
from .policy import Decision, Policy
from .rollout import RolloutPolicy, RolloutRule, RolloutSnapshot, Share
from .snapshot import CheckResult, DeadlineSnapshot, GateSnapshot, HealthSnapshot, Snapshot
from .ticket import Ticket, TicketState

__all__ = [
    "AIMD",
    "SKIP",
    "AdaptiveGate",
    "CheckResult",
    "DeadlinePolicy",
    "DeadlineSnapshot",
    "Decision",
    "Exchange",
    "Gate",
    "GateSnapshot",
    "HealthPolicy",
    "HealthSnapshot",
    "Law",
    "Lifecycle",
    "Policy",
    "Reply",
    "RolloutPolicy",
    "RolloutRule",
    "RolloutSnapshot",
    "Senses",
    "Share",
    "Snapshot",
    "State",
    "Ticket",
    "TicketState",
    "Window",
]
