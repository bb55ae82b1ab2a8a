"""An adaptive gate that refuses the least important requests first."""

from __future__ import annotations

from bisect import bisect_right, insort
from dataclasses import replace
from operator import attrgetter, sub
from typing import Any

from .adaptive import AdaptiveGate
from .cutoff import Cutoff, Flow
from .exchange import Exchange, Reply
from .hold import Hold
from .laws.base import Law, Senses
from .ranking import NORMAL, Ranking
from .snapshot import GateSnapshot
from .ticket import Ticket

SAFE = 0.7
"""Share of capacity whose requests may wait longer for a slot than others ..."""
FAVOUR = 3.0
"""... by this factor. While the law cuts its limit, nobody gets a slot for a while."""
STICKY = 4.0
"""The same for all whom a held line has let in: the queue must not part what it holds together."""
BATCH, FINEST = 20, 0.025
"""Fast handlers need no longer waits than those of so many completions, in seconds not less than
the second: to wait for a slot costs more than to be refused."""
LATEST, RECENT = 0.125, 0.025
"""Waits are smoothed over eight requests or so, but not over more than so many seconds."""
BUSY, BOUND = 0.8, 0.75
"""Utilization, and share of the limit in use, below which there is time to spare."""


class RankedTicket(Ticket):
    """A place in a queue that is in order of classes."""

    __slots__ = ("order",)

    def __init__(self, queued_at: float, expires: float, order: int) -> None:
        super().__init__(queued_at, expires)
        self.order = order


_order = attrgetter("order")


class PriorityGate(AdaptiveGate):
    """As `AdaptiveGate`, with ranks: under pressure the lowest class goes first, critical last.

    The law still says how many may run at once, and whether there is an overload. What it would
    refuse is then no longer whoever comes at the wrong moment: a `Cutoff` refuses by rank, before
    there is anything left for the law to refuse, and the queue for slots is in order of classes.

    Args:
        law: moves the limit.
        ranking: tells how important a request is.
        max_wait: seconds of waiting that are in order.
        queue_timeout: most seconds a request may wait for a slot.
        options: as for `AdaptiveGate`.
    """

    def __init__(
        self,
        law: Law,
        ranking: Ranking,
        *,
        max_wait: float = 0.1,
        queue_timeout: float = 5.0,
        **options: Any,
    ) -> None:
        super().__init__(law, **options)
        self.ranking = ranking
        self.cutoff = Hold(ranking) if ranking.sticky else Cutoff()
        self._max_wait = max_wait
        self._queue_timeout = queue_timeout
        self._line: float | None = None
        self._outranked = 0  # refused by rank in this window
        self._wait = self._judged = 0.0  # smoothed seconds; when a request was last judged
        self._passed = 0  # ahead, and not seen again in this window
        self._opened = self._totals()

    def snapshot(self) -> GateSnapshot:
        """Return the state, with the rank from which on requests are refused."""
        return replace(super().snapshot(), cutoff=self._line, priority_errors=self.ranking.errors)

    def ahead(self, exchange: Exchange) -> Reply | None:
        """Refuse by rank, while there is pressure."""
        if not (self.law.saturated or self.cutoff.active) or not self._counts(exchange):
            return None
        now = exchange.arrived
        if now >= self._window_ends:
            self.tick(now)  # perhaps nobody gets further than this
        reply = self._judge(exchange, now)
        self._passed += reply is None
        return reply

    def _look(self, exchange: Exchange, now: float) -> Reply | None:
        if now >= self._window_ends:
            self.tick(now)
        if not self._alert():
            self._attend = self._window_ends
            return None
        self._attend = 0.0
        if self._passed:
            self._passed -= 1  # no second draw: places differ from one to the next
            return None
        return self._judge(exchange, now)

    def _alert(self) -> bool:
        """Whether every request is ranked."""
        return self.law.alert or self.law.saturated or self.cutoff.active

    def _judge(self, exchange: Exchange, now: float) -> Reply | None:
        """Rank a request, and refuse it if it is beyond the line."""
        law, cutoff = self.law, self.cutoff
        rank = exchange.rank = self.ranking.rank(exchange, now)
        cutoff.count(rank)
        waited, backlog, reason = 0.0, 0, None
        if law.alert:
            waited = exchange.waited(now)
            self._waits.append(waited)
            backlog = self._backlog() if self._backlog is not None else 0
            reason = law.refuses(waited, backlog)
        if reason is not None:
            cutoff.start()
        if not cutoff.active:
            return None if reason is None else self._refuse(reason)
        line = self._line = cutoff.line(self._delay(rank, self._smooth_wait(waited, now), backlog))
        if rank < line:
            return None
        self._outranked += 1
        return self._refuse("saturated")

    def _smooth_wait(self, waited: float, now: float) -> float:
        """Return how long requests waited of late: a single one may be old for its own reasons."""
        since, self._judged = now - self._judged, now
        self._wait += max(LATEST, since / (since + RECENT)) * (waited - self._wait)
        return self._wait

    def _delay(self, rank: float, waited: float, backlog: int) -> float:
        """Return how long a request of ``rank`` waits, in multiples of what is allowed."""
        if backlog:
            # Where only the loop can say how long a request waited, it knows nothing of this queue.
            waited = max(waited, backlog / max(1.0, self.cutoff.arriving))
        queue = self._queue
        ahead = len(queue) if self.ranking.sticky else bisect_right(queue, int(rank), key=_order)
        allowed = max(self._max_wait, self._patience(0.0))
        if not self.ranking.sticky:
            allowed = min(allowed, max(FINEST, BATCH / max(1.0, self.cutoff.done)))
        return (waited + ahead / max(1.0, self.cutoff.done)) / allowed

    def _full(self, exchange: Exchange, now: float) -> Reply | Ticket:
        queue, most = self._queue, self._max_queue
        if self._draining or not most:
            return super()._full(exchange, now)
        rank = exchange.rank
        if rank is None:
            rank = self.ranking.rank(exchange, now)
            if not self._alert():
                self.cutoff.count(rank)
        order = int(rank)  # within a class, first come, first served
        if len(queue) >= most:
            reply = self._refuse("saturated" if self.law.saturated else "queue_full")
            worst: Any = queue[-1]
            if order >= worst.order:
                return reply
            queue.pop()
            worst.refuse(reply)
        patience = min(self._queue_timeout, self._patience(now) * self._favour(rank))
        ticket = RankedTicket(now, now + patience, order)
        insort(queue, ticket, key=_order)
        return ticket

    def _shorten(self, now: float) -> None:
        """Keep what was promised: each was promised something else, and the line does the rest."""

    def _totals(self) -> tuple[int, int, int, int]:
        return self.admitted, sum(self.refused.values()), self.inflight, self.queued

    def _favour(self, rank: float) -> float:
        """Return by which factor a request may wait longer than the law says."""
        cutoff = self.cutoff
        if not cutoff.active:
            return FAVOUR if rank < NORMAL else 1.0
        if self.ranking.sticky:
            return STICKY
        return FAVOUR if rank < cutoff.below(SAFE * cutoff.capacity) else 1.0

    def _close_window(self, now: float, senses: Senses, before: Senses) -> None:
        opened, self._opened = self._opened, self._totals()
        admitted, refused, running, queued = map(sub, self._opened, opened)
        waits, peak, limit = self.queued > 0, self._peak, self.limit
        super()._close_window(now, senses, before)
        if refused > self._outranked:
            self.cutoff.start()
        self._outranked = self._passed = 0
        pressed = refused > 0 or waits
        spare = not waits and (self._utilization or 0.0) < BUSY and peak < BOUND * limit
        waited = self._waits[-1] if self.law.alert and self._waits else None
        self.cutoff.update(
            Flow(
                length=senses.at - before.at,
                # A grant that was given back is taken back from the admitted.
                arrivals=max(0, admitted + refused + queued),
                done=max(0, admitted - running),
                waited=waited,
                pressed=pressed,
                spare=spare,
            )
        )
        if not self.cutoff.active:
            self._line = None
