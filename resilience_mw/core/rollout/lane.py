"""A rule at work: its share here, the two apps, and how they do."""

from __future__ import annotations

from collections.abc import Callable
from random import random
from typing import Any

from ..exchange import Exchange
from .comparison import Comparison, RolloutGuard, Verdict
from .hashing import PLACES, place, places_of
from .keys import Key, user_key
from .meter import Meter
from .rule import RolloutRule
from .share import Share
from .snapshot import RuleSnapshot

Trip = Callable[["Lane", Verdict], object]
"""Told that the new stack of a lane has been found to be worse."""


class Lane:
    """One rule at work.

    Args:
        rule: which requests, and who of them first.
        server_name: this server, in rules that go by servers.
        address: finds the address of a client, in rules that go by users.
        guard: what the new stack has to keep to; ``None`` = nothing takes it back.
        now: monotonic seconds.
        trip: told when it does not; the lane is held by then.
    """

    __slots__ = (
        "_chosen",
        "_comparison",
        "_key",
        "_place",
        "_places",
        "_trip",
        "apps",
        "new",
        "old",
        "rule",
        "share",
        "testers",
    )

    def __init__(
        self,
        rule: RolloutRule,
        *,
        server_name: str,
        address: Key,
        guard: RolloutGuard | None,
        now: float,
        trip: Trip,
    ) -> None:
        self.rule = rule
        self._trip = trip
        self._comparison = None if guard is None else Comparison(guard, now)
        look = None if guard is None else self._look
        self.old = Meter(False, self._comparison, look)
        self.new = Meter(True, self._comparison, look)
        self.testers = Meter(True)  # who knows what to look for is no sample of the users
        self.apps: tuple[Any, Any, Any] = (None, None, None)
        """What serves the old variant, the new one, and the new one to testers; whoever drives the
        policy sets it."""
        self._place = place(rule.name, server_name) if rule.by == "server" else None
        self._key = user_key(rule, address) if rule.by == "user" else None
        self.share = Share(rule.percent)
        self._places = 0
        self._chosen: bool | None = None
        self.apply(None)

    def apply(self, share: Share | None) -> None:
        """Take the share that the store holds; ``None`` = it holds none, and the rule's counts."""
        share = Share(self.rule.percent) if share is None else share
        if self.share.held and not share.held and self._comparison is not None:
            self._comparison.restart()
        places = 0 if share.held else places_of(share.percent)
        self.share, self._places = share, places
        if self._place is not None:
            self._chosen = self._place < places
        else:
            # At the two ends nobody need be asked who they are.
            self._chosen = places == PLACES if places in (0, PLACES) else None

    def chooses_new(self, exchange: Exchange) -> bool:
        """Return whether the request, which the rule is about, goes to the new stack."""
        if self._chosen is not None:
            return self._chosen
        if self._key is None:
            return random() * PLACES < self._places
        key = self._key(exchange)
        return key is not None and place(self.rule.name, key) < self._places

    def _look(self, now: float) -> None:
        comparison = self._comparison
        verdict = None if comparison is None else comparison.verdict(now)
        if verdict is not None and self._places:
            # Here at once; everywhere else as soon as whoever is told has told the store.
            self._trip(self, verdict)
            self.apply(Share(0.0, held=True))

    def snapshot(self) -> RuleSnapshot:
        """Return the share in force, and the counts of both variants."""
        return RuleSnapshot(
            name=self.rule.name,
            percent=self._places / 100,
            held=self.share.held,
            by=self.rule.by,
            included=self._chosen if self._place is not None else None,
            old=self.old.snapshot(),
            new=self.new.snapshot(),
            testers=self.testers.snapshot(),
        )
