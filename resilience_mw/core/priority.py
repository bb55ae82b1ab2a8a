"""An adaptive gate that refuses the least important requests first."""

from __future__ import annotations

from typing import Any

from .adaptive import AdaptiveGate
from .exchange import Exchange, Reply
from .laws.base import Law, Senses
from .ranking import Ranking
from .ticket import Ticket


class PriorityGate(AdaptiveGate):
    """As `AdaptiveGate`, with ranks: under pressure the lowest goes first, critical goes last.

    The law still decides how much is too much. What it has to refuse by itself moves the
    threshold on ranks, until the law has nothing to refuse any more; meanwhile it may refuse only
    the class in which the threshold lies, and those below.

    Args:
        law: moves the limit.
        ranking: tells how important a request is.
        options: as for `AdaptiveGate`.
    """

    def __init__(self, law: Law, ranking: Ranking, **options: Any) -> None:
        super().__init__(law, **options)
        self.ranking = ranking
        self._by_rank = 0  # refused by rank in this window
        self._protected = False

    def _refusal(self, exchange: Exchange, now: float) -> str | None:
        ranking = self.ranking
        rank = ranking.rank(exchange, now)
        if rank >= ranking.threshold:
            self._by_rank += 1
            return "saturated"
        reason = super()._refusal(exchange, now)
        self._protected = int(rank) < ranking.marginal
        return None if self._protected else reason

    def _full(self, now: float) -> Reply | Ticket:
        if self._protected:
            self._protected = False
            return super(AdaptiveGate, self)._full(now)  # it may wait where others are refused
        return super()._full(now)

    def _close_window(self, now: float, senses: Senses, before: Senses) -> None:
        admitted, refused = self._counted
        refused = sum(self.refused.values()) - refused
        arrivals = self.admitted - admitted + refused
        super()._close_window(now, senses, before)
        self.ranking.update(max(0, refused - self._by_rank), arrivals, self.law.saturated)
        self._by_rank = 0
