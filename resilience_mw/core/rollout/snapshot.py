"""What a roll-out says about itself: frozen, plain numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class VariantSnapshot:
    """One of the two stacks under one rule. Counts are requests since start."""

    requests: int
    errors: int
    """Answered 5xx, failed without an answer, or answered after their deadline."""
    refusals: int
    """Asked to come later: 429, or 503 with ``Retry-After``. They are no errors."""
    late: int
    """Of the errors: the deadline passed before the response started."""
    fallbacks: int
    """Of the errors: nothing had been answered yet, and the old stack took over."""
    p50: float | None
    p95: float | None
    """Seconds until the response started, of the last thousand requests, refusals left out."""


@dataclass(frozen=True, slots=True)
class RuleSnapshot:
    """One rule and its two variants."""

    name: str
    percent: float
    """The share in force here; 0 while the rule is held."""
    held: bool
    """Taken back by the guard: 0 until a person clears it."""
    by: str
    included: bool | None
    """With ``by="server"``, whether this server is in; else ``None``."""
    old: VariantSnapshot
    new: VariantSnapshot
    testers: VariantSnapshot
    """The new stack as testers had it: not among `new`, and not compared."""


@dataclass(frozen=True, slots=True)
class RolloutSnapshot:
    """All rules, in their order."""

    server_name: str
    synced: bool
    """Whether the shares are those of the store (or of the code, without one): ``False`` until a
    store has been read for the first time, and then all shares are 0."""
    rules: tuple[RuleSnapshot, ...]
