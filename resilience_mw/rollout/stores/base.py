"""What every store can do: keep the shares, change one of them, and remember who did."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import EllipsisType, MappingProxyType
from typing import Any

from ...config.wording import one_line, show
from ...core.rollout import Share
from ...exceptions import ConfigError

LONGEST_RULE = 100
LONGEST_WHO = 100
LONGEST_WHY = 500

YEAR_10000 = 253_402_300_800
"""Seconds since the epoch: no calendar goes further."""

KEPT = 1000
"""Changes that a history keeps: the newest."""


class StoreError(Exception):
    """The store cannot be read or changed now; the message is one line without secrets."""

    readable: Mapping[str, Share] = MappingProxyType({})
    """What could be read all the same, and shall be followed."""


class RuleHeld(StoreError):
    """The guard holds the rule at 0: it rises after a person has cleared the hold, not before."""


class UnknownRule(StoreError):
    """The store does not have the rule, and was not told that it is a new one."""


class Overtaken(StoreError):
    """Somebody else was faster: the rule is not at the share that the change was meant for."""


class Unanswered(StoreError):
    """No answer came in time: a change may have been made, or not."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a rule's share.

    Args:
        time: seconds since the epoch, by the clock of the host that made it.
        who: a person, or ``guard``.
        rule: its name.
        before: the share until then, or ``None`` if the store did not have the rule.
        after: the share from then on.
        why: free text; of the guard, the figures.
    """

    time: float
    who: str
    rule: str
    before: Share | None
    after: Share
    why: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it, a share as its percent and, if it is held, ``held``."""
        return {
            "time": self.time,
            "who": self.who,
            "rule": self.rule,
            "from": None if self.before is None else _as_json(self.before),
            "to": _as_json(self.after),
            "why": self.why,
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Change:
        """Return what :meth:`to_dict` wrote.

        Raises:
            ValueError, TypeError, KeyError: it is nothing that `to_dict` writes.
        """
        before, moment = given["from"], float(given["time"])
        if not 0 <= moment < YEAR_10000:
            raise ValueError("no time")
        return cls(
            moment,
            str(given["who"]),
            str(given["rule"]),
            None if before is None else _from_json(before),
            _from_json(given["to"]),
            str(given["why"]),
        )


Decide = Callable[[Share | None], Share | None]
"""Takes the share there is; returns the one to write, or ``None`` to write nothing."""


class Store(ABC):
    """Keeps the shares of a roll-out's rules for all processes, and the history of their changes.

    Its methods wait for a disk or a network: call them from a thread that no request needs. A
    `Follower` does.

    Attributes:
        name: what messages call it; no secret in it.
        interval: seconds between two looks of a follower.
    """

    name: str
    interval: float = 0.25

    @abstractmethod
    def load(self) -> Mapping[str, Share]:
        """Return the share of every rule that the store has.

        Raises:
            StoreError: it cannot be read, or what is there makes no sense.
        """

    @abstractmethod
    def history(self, limit: int = 20) -> Sequence[Change]:
        """Return the last `limit` changes, newest first.

        Raises:
            StoreError: it cannot be read.
        """

    @abstractmethod
    def transact(self, rule: str, decide: Decide, who: str, why: str) -> Change | None:
        """Give `decide` the rule's share and write what it returns and its record, as one step.

        Nobody else's change of the rule may come between. `decide` may be called again, with what
        somebody else wrote, and what it raises is for the caller. ``None`` = nothing was written.

        Raises:
            StoreError: the store cannot be read or changed.
        """

    def change(
        self,
        rule: str,
        percent: float,
        *,
        held: bool | None = None,
        expected: Share | EllipsisType | None = ...,
        new: bool = True,
        who: str,
        why: str = "",
    ) -> Change:
        """Set a rule's share and record it; of two at once, the second sees the first's.

        Args:
            rule: the rule's name.
            percent: 0 to 100, in steps of 0.01.
            held: ``True`` holds the rule at 0, ``False`` ends a hold, ``None`` leaves it as it is.
                To hold a rule that is held already is no change, and is not recorded: all
                servers' guards may trip within the same second.
            expected: make the change only if the rule is at this share, ``None`` = not in the
                store; left out, whatever it is at.
            new: whether a rule that the store does not have is written.
            who: who changes it.
            why: the reason.

        Raises:
            ConfigError: a value breaks its rule.
            Overtaken: the rule is not at the `expected` share.
            UnknownRule: the store does not have the rule, and `new` is false.
            RuleHeld: `percent` is above 0 while the rule is held and stays so.
            StoreError: the store cannot be changed.
        """
        checked_rule(rule)
        percent = checked_percent(percent)
        if held and percent:
            raise ConfigError(f"percent must be 0 for a rule that is held, got {percent:g}")
        seen: list[Share] = []

        def decide(before: Share | None) -> Share | None:
            if before is None and not new:
                raise UnknownRule(f"{rule} is not in {self.name}")
            if expected is not ... and before != expected:
                raise Overtaken(f"{rule} was changed meanwhile")
            was_held = before is not None and before.held
            if percent and was_held and held is None:
                raise RuleHeld(f"{rule} is held at 0 by the guard; clear it first")
            if held and was_held and before is not None:
                seen.append(before)
                return None
            return Share(percent, was_held if held is None else held)

        change = self.transact(rule, decide, _line(who, LONGEST_WHO), _line(why, LONGEST_WHY))
        return change or Change(time.time(), who, rule, seen[-1], seen[-1], why)

    def clear_hold(self, rule: str, *, who: str = "", why: str = "") -> Change | None:
        """Let a held rule be raised again; it stays at 0. ``None`` if it was not held.

        Raises:
            ConfigError, StoreError: as for :meth:`change`.
        """

        def decide(before: Share | None) -> Share | None:
            return Share(0.0) if before is not None and before.held else None

        checked_rule(rule)
        return self.transact(rule, decide, _line(who, LONGEST_WHO), _line(why, LONGEST_WHY))

    def announce(self, shares: Mapping[str, Share], *, who: str, why: str = "") -> None:
        """Write those rules that the store does not have, and none that it has.

        Raises:
            ConfigError, StoreError: as for :meth:`change`.
        """
        for rule, share in shares.items():
            checked_rule(rule)
            new = Share(0.0 if share.held else checked_percent(share.percent), share.held)

            def decide(before: Share | None, new: Share = new) -> Share | None:
                return new if before is None else None

            self.transact(rule, decide, _line(who, LONGEST_WHO), _line(why, LONGEST_WHY))

    def why_empty(self) -> str:
        """Return in a few words why it has no rules, such as that there is no such file; or ``""``.

        Called where :meth:`load` returned none, for people who may have named another store than
        they meant.
        """
        return ""

    def after_fork(self) -> None:  # noqa: B027
        """Give up, in a forked child, what belongs to the parent, such as connections."""

    def close(self) -> None:  # noqa: B027
        """Give up connections; the next call opens them again."""


def checked_percent(percent: object) -> float:
    """Return a share in percent, or raise `ConfigError`: 0 to 100, in steps of 0.01."""
    number = isinstance(percent, int | float) and not isinstance(percent, bool)
    if not (number and 0 <= percent <= 100):  # type: ignore[operator]
        raise ConfigError(f"percent must be between 0 and 100, got {show(percent)}")
    hundredths = float(percent) * 100  # type: ignore[arg-type]
    if abs(hundredths - round(hundredths)) > 1e-6:
        raise ConfigError(f"percent must be in steps of 0.01, got {show(percent)}")
    return round(hundredths) / 100


def checked_rule(rule: object) -> str:
    """Return a rule's name, or raise `ConfigError`: it must be printable and not too long."""
    if not isinstance(rule, str) or not 0 < len(rule) <= LONGEST_RULE or not rule.isprintable():
        raise ConfigError(
            f"rule must be 1 to {LONGEST_RULE} printable characters, got {show(rule)}"
        )
    return rule


def shown_percent(percent: float) -> str:
    """Return a share in percent as it is written: no more digits than it has."""
    return f"{percent:.2f}".rstrip("0").rstrip(".")


def _line(text: str, longest: int) -> str:
    # The record is one line, and what it says is read on terminals.
    line = "".join(c if c.isprintable() else " " for c in text[: 4 * longest])
    return one_line(line, longest)


def _as_json(share: Share) -> dict[str, Any]:
    held = {"held": True} if share.held else {}
    return {"percent": share.percent, **held}


def _from_json(given: Mapping[str, Any]) -> Share:
    return Share(checked_percent(given["percent"]), bool(given.get("held", False)))
