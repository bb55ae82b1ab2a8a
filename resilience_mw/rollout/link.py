"""Between a store and the policy that follows it."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from ..core.rollout import RolloutPolicy, RolloutRule, Share, Verdict
from .follower import Follower
from .stores import Store
from .words import in_force

logger = logging.getLogger("resilience_mw.rollout")

FIRST_LOOK = 1.0
"""Seconds for which a start waits for the store, so that the first requests find their shares."""


class StoreLink:
    """Keeps the shares of a policy at what a store says, and tells it what the guard takes back.

    Args:
        policy: whose shares.
        store: where they are kept; ``None`` = nowhere, and they stay as in the code.
    """

    def __init__(self, policy: RolloutPolicy, store: Store | None) -> None:
        self._policy = policy
        self._store = store
        self._rules = {lane.rule.name: Share(lane.rule.percent) for lane in policy.lanes}
        self._follower: Follower | None = None
        self._serving = False
        if store is not None:
            policy.shut()
            self.start()

    def start(self) -> None:
        """Follow the store, unless that is so already."""
        if self._store is None or self._follower is not None:
            return
        self._follower = Follower(
            self._store, self._apply, rules=self._rules, serving=self._serving
        )
        self._follower.start(wait=FIRST_LOOK)

    def serve(self) -> None:
        """Write to the store from now on: the process serves, and does not only look at the app."""
        first, self._serving = not self._serving, True
        if self._follower is not None:
            self._follower.serve()
        elif first and self._store is None:
            logger.info("%s", in_force(self._rules, self._rules, None))

    def close(self) -> None:
        """Stop following; the last known shares stand."""
        follower, self._follower = self._follower, None
        if follower is not None:
            follower.close()

    def take_back(self, rule: RolloutRule, verdict: Verdict | Exception) -> None:
        """Hold a rule at 0 on every server, and return at once; or say that its guard failed."""
        if isinstance(verdict, Exception):
            logger.error(
                "rollout rule %s: its guard failed, and is off", rule.name, exc_info=verdict
            )
            return
        logger.warning("rollout rule %s: taken back to 0 and held: %s", rule.name, verdict)
        if self._follower is not None:
            self._follower.submit(rule.name, 0.0, held=True, who="guard", why=str(verdict))

    def _apply(self, shares: Mapping[str, Share]) -> None:
        self._policy.shares = shares
