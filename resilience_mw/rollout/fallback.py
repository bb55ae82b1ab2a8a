"""When a request may be given to the old stack after all, and who hears of it."""

from __future__ import annotations

import logging

from .proxy import UpstreamUnreachable

logger = logging.getLogger("resilience_mw.rollout")

SAFE = frozenset(("GET", "HEAD", "OPTIONS"))
"""Methods that change nothing: two apps may be asked."""

SAY_AGAIN = 10.0
"""Seconds for which one line about failures without an answer is enough."""


class Notice:
    """Logs failures that nobody else will see, but not each of them.

    Args:
        rule: the name of the rule.
    """

    __slots__ = ("_rule", "_say_at")

    def __init__(self, rule: str) -> None:
        self._rule = rule
        self._say_at = 0.0

    def __call__(self, failure: Exception | None, now: float) -> None:
        """Take what the new stack raised, or that it sent nothing."""
        if now < self._say_at:
            return
        self._say_at = now + SAY_AGAIN
        logger.warning(
            "rollout rule %s: the new stack did not begin to answer, the old one does: %s",
            self._rule,
            "it sent nothing" if failure is None else repr(failure),
            exc_info=None if isinstance(failure, UpstreamUnreachable) else failure,
        )
