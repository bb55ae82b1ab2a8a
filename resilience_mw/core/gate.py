"""Let a limited number of requests run, hold a few more in order, refuse the rest.

Rules:
1. ``inflight`` is the number of requests that own a slot; each owner gives it back exactly once.
2. Somebody waits only while ``inflight >= limit``, so `enter` needs one comparison.
3. A freed slot goes to the head of the queue before anybody is woken: nobody can steal it.
4. After the limit has shrunk, ``inflight`` may exceed it; freed slots are then not handed on.

The gate does not lock. Where threads share it, the driver holds its lock around every call.
"""

from __future__ import annotations

from collections import deque

from .deadline import LATE
from .exchange import SKIP, Exchange, Reply, busy
from .policy import Decision, Policy
from .snapshot import GateSnapshot
from .ticket import Ticket


class Gate(Policy):
    """At most ``limit`` requests at once.

    Args:
        limit: requests that may run at once.
        max_queue: requests that may wait for a slot; 0 = refuse at once.
        max_wait: seconds each of them may wait.
        exempt: path prefixes that are neither counted nor refused.
        only: path prefixes that are counted and refused, all others not; empty = every path.
        name: shown in snapshots.

    Example:
        >>> gate = Gate(10, max_queue=5, max_wait=1.0)
        >>> gate.snapshot().limit
        10
    """

    def __init__(
        self,
        limit: int,
        *,
        max_queue: int = 0,
        max_wait: float = 0.0,
        exempt: tuple[str, ...] = (),
        only: tuple[str, ...] = (),
        name: str = "limit",
    ) -> None:
        self.name = name
        self.limit = limit
        self.inflight = 0
        self.admitted = 0
        self.refused: dict[str, int] = {}
        self._max_queue = max_queue
        self._max_wait = max_wait
        self._exempt = exempt
        self._only = only
        self._queue: deque[Ticket] = deque()
        self._replies: dict[str, Reply] = {}
        self._draining = False

    def enter(self, exchange: Exchange) -> Decision:
        """Take a slot, or a place in the queue, or be refused."""
        if self._exempt and exchange.path.startswith(self._exempt):
            return SKIP
        if self._only and not exchange.path.startswith(self._only):
            return SKIP
        if self.inflight < self.limit:
            self.inflight += 1
            self.admitted += 1
            return None
        # A request that has waited in a gate further out begins anew here.
        return self._full(exchange, exchange.admitted or exchange.arrived)

    def ahead(self, exchange: Exchange) -> Reply | None:
        """Refuse what finds neither a slot nor a place in the queue."""
        full = self.inflight >= self.limit and len(self._queue) >= self._max_queue
        if not full or not self._counts(exchange):
            return None
        return self._refuse("limit" if not self._max_queue else "queue_full")

    def _counts(self, exchange: Exchange) -> bool:
        path = exchange.path
        if self._exempt and path.startswith(self._exempt):
            return False
        return not self._only or path.startswith(self._only)

    def exit(self, exchange: Exchange, now: float) -> None:
        """Give the slot back, or on to whoever waits longest."""
        self.inflight -= 1
        if self._queue:
            self._hand_on()

    def expire(self, ticket: Ticket, now: float) -> None:
        """Refuse ``ticket`` if it still waits: its time, or that of its request, is up."""
        if ticket.waiting:
            self._queue.remove(ticket)
            ticket.refuse(self._refuse("queue_timeout" if now >= ticket.expires else "deadline"))

    def abandon(self, ticket: Ticket, now: float) -> None:
        """Forget ``ticket``: its client left. If it was granted meanwhile, pass the slot on."""
        if ticket.abandon():
            self._queue.remove(ticket)
        elif ticket.give_back():
            self.admitted -= 1  # its request never ran
            self.inflight -= 1
            self._hand_on()

    def drain(self) -> None:
        """Refuse whoever waits, and let nobody wait any more; free slots are still given."""
        self._draining = True
        while self._queue:
            self._queue.popleft().refuse(self._refuse("draining"))

    @property
    def queued(self) -> int:
        """Requests waiting for a slot."""
        return len(self._queue)

    def snapshot(self) -> GateSnapshot:
        """Return limit, running and waiting requests, and what was admitted and refused."""
        return GateSnapshot(
            name=self.name,
            limit=self.limit,
            inflight=self.inflight,
            queued=self.queued,
            admitted=self.admitted,
            refused=dict(self.refused),
        )

    # -- when there is no free slot -----------------------------------------------------------

    def _full(self, exchange: Exchange, now: float) -> Reply | Ticket:
        if self._draining:
            return self._refuse("draining")
        if not self._max_queue:
            return self._refuse("limit")
        if len(self._queue) >= self._max_queue:
            return self._refuse("queue_full")
        ticket = Ticket(now, now + self._patience(now))
        self._queue.append(ticket)
        return ticket

    def _patience(self, now: float) -> float:
        return self._max_wait

    def _hand_on(self) -> None:
        while self._queue and self.inflight < self.limit:
            self.inflight += 1
            self.admitted += 1
            self._queue.popleft().grant()

    def _refuse(self, reason: str) -> Reply:
        self.refused[reason] = self.refused.get(reason, 0) + 1
        reply = self._replies.get(reason)
        if reply is None:
            reply = self._replies[reason] = LATE if reason == "deadline" else busy(reason)
        return reply
