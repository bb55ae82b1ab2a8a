"""Choose which of two stacks gets a request, without I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...exceptions import ConfigError
from ..exchange import Exchange
from ..policy import Policy
from .comparison import RolloutGuard
from .keys import Key
from .lane import Lane, Tell
from .paths import plainly_written
from .rule import RolloutRule
from .share import Share
from .snapshot import RolloutSnapshot

Testers = Callable[[Exchange, str], bool | None]
"""Returns whether a request and the name of a rule are a tester's who asks for the new stack
(``True``) or the old one (``False``); ``None`` = it is nobody's."""

UNKNOWN: Any = object()
"""Stands for a lane that has to be looked for."""

MOST_PATHS, LONGEST_PATH = 4096, 200
"""Paths that are remembered, and their characters."""

OLD, TESTER = 0, 2
"""Positions in `Lane.apps`."""


class RolloutPolicy(Policy):
    """Sends a share of some requests to a new stack.

    The first rule that is about a request decides; what no rule is about stays where it is.
    After construction, whoever drives it gives each of the `lanes` its two apps.

    Args:
        rules: in the order in which they are tried.
        server_name: what this server is called, for rules that go by servers.
        address: finds the address of a client, for rules that go by users.
        testers: tells who may choose.
        guard: what a new stack has to keep to; ``None`` = nothing takes it back by itself.
        now: monotonic seconds.
        tell: told of a rule whose new stack is worse, and why, its share being 0 here by then; or
            of one whose guard has failed, and how.

    Raises:
        ConfigError: there is no rule, something in ``rules`` is none, or two have one name.

    Example:
        >>> rules = [RolloutRule("cart", path="/cart", percent=100)]
        >>> RolloutPolicy(rules, server_name="web-1").shares["cart"]
        Share(percent=100, held=False)
    """

    reroutes = True

    def __init__(
        self,
        rules: Sequence[RolloutRule],
        *,
        server_name: str,
        address: Key = lambda exchange: exchange.peer,
        testers: Testers | None = None,
        guard: RolloutGuard | None = None,
        now: float = 0.0,
        tell: Tell = lambda rule, why: None,
    ) -> None:
        _check(rules)
        self.server_name = server_name
        self.synced = True
        """Whether the shares are known; see `shut`."""
        self._testers = testers
        self.lanes = tuple(
            Lane(
                rule,
                server_name=server_name,
                address=address,
                guard=guard,
                now=now,
                tell=tell,
            )
            for rule in rules
        )
        self.others = tuple(lane for lane in self.lanes if lane.rule.path is None)
        """The lanes that may be about a path which no rule names."""
        self.exact: Mapping[str, tuple[Lane, ...]] = {
            path: tuple(lane for lane in self.lanes if lane.rule.path in (None, path))
            for path in {lane.rule.path for lane in self.lanes if lane.rule.path is not None}
        }
        """The lanes that may be about a path which some rule names."""
        self._named: dict[str, Lane | None] = {
            path: lanes[0] if testers is None and lanes[0].plain else UNKNOWN
            for path, lanes in self.exact.items()
        }
        self.known: dict[str, Lane | None] = dict(self._named)
        """The lanes of paths that tell all by themselves, whatever else a request says; ``None`` =
        no rule is about it. Such paths are remembered, so that most requests cost one look-up."""
        self._remembers = (
            testers is None
            and bool(self.others)
            and not any(lane.rule.methods or lane.rule.host for lane in self.lanes)
        )
        self.unknown: Any = UNKNOWN if self.others else None
        """What a path is that is not among the `known`: ``None``, too, or a case for `enter`."""

    @property
    def shares(self) -> Mapping[str, Share]:
        """The share of each rule in force here."""
        return {lane.rule.name: lane.share for lane in self.lanes}

    @shares.setter
    def shares(self, shares: Mapping[str, Share]) -> None:
        # Any thread may do this: a request reads one attribute of one lane, before or after.
        for lane in self.lanes:
            lane.apply(shares.get(lane.rule.name))
        self.synced = True

    def shut(self) -> None:
        """Leave everything with the old stack until `shares` are known.

        What a store says may be "back, at once", so the code's percentages are no safe guess.
        """
        self.shares = {lane.rule.name: Share(0.0) for lane in self.lanes}
        self.synced = False

    def enter(self, exchange: Exchange) -> None:
        """Set ``exchange.target`` to what shall serve the request, if a rule is about it."""
        lane = self._lane(exchange)
        if lane is None:
            return
        raw = exchange.raw_path
        if raw is not None and not plainly_written(raw):
            return
        wish = None if self._testers is None else self._testers(exchange, lane.rule.name)
        if wish is None:
            exchange.target = lane.apps[lane.chooses_new(exchange)]
        else:
            exchange.target = lane.apps[TESTER if wish else OLD]

    def _lane(self, exchange: Exchange) -> Lane | None:
        """Return the lane of the first rule that is about a request."""
        path = exchange.path
        found: Lane | None = self.known.get(path, UNKNOWN)
        if found is not UNKNOWN:
            return found
        found = None
        for lane in self.exact.get(path, self.others):
            rule = lane.rule
            host = None if rule.host is None else exchange.header("host")
            if rule.matches(path, host, exchange.method):
                found = lane
                break
        if self._remembers and len(path) <= LONGEST_PATH:
            if len(self.known) >= MOST_PATHS + len(self._named):
                # Clients choose their paths; a full memory starts anew rather than grow.
                self.known.clear()
                self.known.update(self._named)
            self.known[path] = found
        return found

    def snapshot(self) -> RolloutSnapshot:
        """Return the shares in force, and the counts of both variants of each rule."""
        return RolloutSnapshot(
            server_name=self.server_name,
            synced=self.synced,
            rules=tuple(lane.snapshot() for lane in self.lanes),
        )


def _check(rules: Any) -> None:
    if isinstance(rules, str) or not isinstance(rules, Sequence) or not rules:
        raise ConfigError(f"rules must be a list of RolloutRule, got {rules!r:.80}")
    names: set[str] = set()
    for rule in rules:
        if not isinstance(rule, RolloutRule):
            raise ConfigError(f"rules must be a list of RolloutRule, got {rule!r:.80} in it")
        if rule.name.lower() in names:
            raise ConfigError(f"rules must have distinct names, got {rule.name!r} twice")
        names.add(rule.name.lower())
