"""When the new stack counts as worse than the old one: options, and the finding."""

from __future__ import annotations

from dataclasses import dataclass

from ...exceptions import ConfigError
from ...keywords import strict


@strict
@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutGuard:
    """What a new stack has to keep to.

    It trips where the new stack is worse beyond chance (`confidence`) *and* by more than is
    tolerated, in failures, missed deadlines, hangs or latency. Refusals are none of these.

    Args:
        window: seconds of traffic that are compared. Where the new stack gets fewer than
            `min_samples` requests in it, up to ten times as many.
        min_samples: requests of the new stack, and of what it is compared with, below which
            nothing is decided.
        confidence: chance that a new stack that is as good as the old one is left alone
            throughout one window, whatever the traffic and however often it is looked at.
        max_error_increase: share of the requests, 0 to 1, by which the new stack may fail (or be
            late, or hang) more often than the old one.
        max_latency_ratio: the new stack's 95th percentile may be so many times the old one's.
        latency_slack: ... and so many seconds more in any case.
        error_ceiling: share of failures that the new stack may not exceed while nothing is known
            of the old one.
        baseline_age: seconds for which the old stack's last traffic is compared with, once it
            gets too little of it.

    Raises:
        ConfigError: a value out of its range.
    """

    window: float = 30.0
    min_samples: int = 50
    confidence: float = 0.99999
    max_error_increase: float = 0.01
    max_latency_ratio: float = 1.5
    latency_slack: float = 0.002
    error_ceiling: float = 0.02
    baseline_age: float = 3600.0

    def __post_init__(self) -> None:
        window, samples, sure = self.window, self.min_samples, self.confidence
        _check("window", "a number of seconds > 0", window, _number(window) and window > 0)
        _check("min_samples", "an integer >= 1", samples, _number(samples, int) and samples >= 1)
        _check("confidence", "between 0.5 and 1", sure, _number(sure) and 0.5 <= sure < 1)
        for name in ("max_error_increase", "error_ceiling"):
            share = getattr(self, name)
            _check(name, "between 0 and 1", share, _number(share) and 0 <= share < 1)
        ratio = self.max_latency_ratio
        _check("max_latency_ratio", "a number >= 1", ratio, _number(ratio) and ratio >= 1)
        for name in ("latency_slack", "baseline_age"):
            seconds = getattr(self, name)
            _check(name, "a number of seconds >= 0", seconds, _number(seconds) and seconds >= 0)


def _number(value: object, *kinds: type) -> bool:
    """Whether ``value`` is a finite number, and no boolean."""
    if isinstance(value, bool) or not isinstance(value, kinds or (int, float)):
        return False
    return isinstance(value, int) or value - value == 0  # type: ignore[operator]


def _check(name: str, rule: str, value: object, right: bool) -> None:
    if not right:
        raise ConfigError(f"guard.{name} must be {rule}, got {value!r:.80}")


WORDS = {
    "errors": "failed",
    "deadlines": "missed their deadline",
    "hangs": "took over ten times as long",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """That the new stack is worse, and the figures that say so."""

    reason: str
    """``errors``, ``deadlines``, ``hangs`` or ``latency``."""
    against: str
    """``old``: the old stack at the same time; ``past``: as it was when it last had this traffic;
    ``limit``: nothing is known of it, and `RolloutGuard.error_ceiling` holds."""
    new: float
    """Share of the requests, 0 to 1, or 95th percentile in seconds."""
    old: float
    """The same of the old stack, or the limit."""
    new_samples: int
    old_samples: int
    p: float
    """Chance to see this, or worse, of a stack that is as good as what it is compared with."""
    seconds: float
    """How much traffic was compared."""

    def __str__(self) -> str:
        if self.reason == "latency":
            new, old = f"{1000 * self.new:.3g} ms", f"{1000 * self.old:.3g} ms"
            what = "95th percentile"
        else:
            new, old = f"{100 * self.new:.3g} %", f"{100 * self.old:.3g} %"
            what = WORDS[self.reason]
        other = {"old": "the old", "past": "the old, earlier,", "limit": "the limit of"}
        samples = f" of {self.old_samples} requests" if self.against != "limit" else ""
        return (
            f"{self.reason}: {what} {new} of {self.new_samples} requests on the new stack, "
            f"{other[self.against]} {old}{samples}, in {self.seconds:.3g} s (p = {self.p:.1g})"
        )
