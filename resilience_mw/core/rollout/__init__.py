"""Which of two stacks answers a request: rules, shares and counts, without I/O."""

from __future__ import annotations

from .guard import RolloutGuard, Verdict
from .policy import RolloutPolicy
from .rule import RolloutRule
from .share import Share
from .snapshot import RolloutSnapshot, RuleSnapshot, VariantSnapshot

__all__ = [
    "RolloutGuard",
    "RolloutPolicy",
    "RolloutRule",
    "RolloutSnapshot",
    "RuleSnapshot",
    "Share",
    "VariantSnapshot",
    "Verdict",
]
