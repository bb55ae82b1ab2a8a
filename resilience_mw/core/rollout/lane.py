"""A rule at work: its share here, the two apps, and how they do."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
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

MOST_KEYS, LONGEST_KEY = 4096, 200
"""Users whose places are remembered, and characters of what names them: a hash costs more than all
the rest of a decision."""

Tell = Callable[[RolloutRule, Verdict | Exception], object]
"""Told that the new stack of a rule is worse, or why nobody can know any more."""


class Lane:
    """One rule at work.

    Args:
        rule: which requests, and who of them first.
        server_name: this server, in rules that go by servers.
        address: finds the address of a client, in rules that go by users.
        guard: what the new stack has to keep to; ``None`` = nothing takes it back.
        now: monotonic seconds.
        tell: told when it does not, and the lane is held by then; or what the guard itself died of.
    """

    __slots__ = (
        "_cleared",
        "_comparison",
        "_key",
        "_known",
        "_place",
        "_places",
        "_tell",
        "apps",
        "by_chance",
        "chosen",
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
        tell: Tell,
    ) -> None:
        self.rule = rule
        self._tell = tell
        self._cleared = False
        self._comparison = None if guard is None else Comparison(guard, now, self._running)
        self.old = Meter(False, self._comparison, self._look)
        self.new = Meter(True, self._comparison, self._look)
        self.testers = Meter(True)  # who knows what to look for is no sample of the users
        self.apps: tuple[Any, Any, Any] = (None, None, None)
        """What serves the old variant, the new one, and the new one to testers; whoever drives the
        policy sets it."""
        self._place = place(rule.name, server_name) if rule.by == "server" else None
        self._key = user_key(rule, address) if rule.by == "user" else None
        self._known: dict[str, int] = {}
        self.by_chance = rule.by == "request"
        """Whether `draws_new` decides, unless all requests go to one of the stacks."""
        self.share = Share(rule.percent)
        self._places = 0
        self.chosen: bool | None = None
        """Whether all requests go to the new stack, or none; ``None`` = each is asked."""
        self.apply(None)

    def apply(self, share: Share | None) -> None:
        """Take the share that the store holds; ``None`` = it holds none, and the rule's counts."""
        share = Share(self.rule.percent) if share is None else share
        places = 0 if share.held else places_of(share.percent)
        # What it did before it was taken back, by whomever, says nothing of what was mended since.
        # Whoever calls holds no lock: the comparison forgets when a request asks for a verdict.
        self._cleared |= places > 0 and not self._places
        self.share, self._places = share, places
        if self._place is not None:
            self.chosen = self._place < places
        else:
            # At the two ends nobody need be asked who they are.
            self.chosen = places == PLACES if places in (0, PLACES) else None

    @property
    def plain(self) -> bool:
        """Whether the path alone tells which requests the rule is about."""
        rule = self.rule
        return rule.path is not None and rule.host is None and not rule.methods

    def chooses_new(self, exchange: Exchange) -> bool:
        """Return whether the request, which the rule is about, goes to the new stack."""
        if self.chosen is not None:
            return self.chosen
        if self._key is None:
            return self.draws_new()
        key = self._key(exchange)
        if key is None:
            return False
        found = self._known.get(key)
        return (self._meet(key) if found is None else found) < self._places

    def draws_new(self) -> bool:
        """Return the same where only chance decides, and nobody need be asked."""
        return random() * PLACES < self._places

    def _meet(self, key: str) -> int:
        """Return the place of a user, and keep it in memory."""
        found = place(self.rule.name, key)
        if len(key) <= LONGEST_KEY:
            if len(self._known) >= MOST_KEYS:
                # Clients choose their keys; a full memory starts anew rather than grow.
                self._known.clear()
            self._known[key] = found
        return found

    def _look(self, now: float) -> None:
        comparison = self._comparison
        if comparison is None:
            return
        if self._cleared:
            self._cleared = False
            comparison.restart()
        try:
            verdict = comparison.verdict(now)
        except Exception as error:
            # A request asks, which must not fail for it.
            self._comparison = None
            self.old.look_at = self.new.look_at = inf
            self._tell(self.rule, error)
            return
        self.old.look_at = self.new.look_at = comparison.edge
        if verdict is not None and self._places:
            # Here at once; everywhere else as soon as whoever is told has told the store.
            self.apply(Share(0.0, held=True))
            self._tell(self.rule, verdict)

    def _running(self, new: bool) -> list[float]:
        """Return when the requests began that one of the stacks has not answered yet."""
        running = (self.new if new else self.old).running
        # Copied in one step: threads may come and go meanwhile.
        return [request.began for request in list(running or ())]

    def snapshot(self) -> RuleSnapshot:
        """Return the share in force, and the counts of both variants."""
        return RuleSnapshot(
            name=self.rule.name,
            percent=self._places / 100,
            held=self.share.held,
            by=self.rule.by,
            included=self.chosen if self._place is not None else None,
            old=self.old.snapshot(),
            new=self.new.snapshot(),
            testers=self.testers.snapshot(),
        )
