"""Try a gate out: decide and count as it would, and refuse nothing.

Every request runs at once, and the gate plays along beside it, in its own time:

| the gate would | here |
|---|---|
| let it in | it takes a slot, and gives it back when it has ended |
| refuse it | it is counted, and runs without a slot |
| queue it | its ticket waits; once granted, it holds the slot for as long as the request ran |

A slot that is granted late is thus held until after the request has really ended, as it would be.
Below the limit the counts are exactly those of a real gate. In an overload they are those of a
gate that looks on: the server stays busier than it would with the gate's help.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from heapq import heappop, heappush

from .adaptive import AdaptiveGate
from .exchange import SKIP, Exchange
from .gate import Gate
from .policy import Decision, Policy
from .snapshot import GateSnapshot
from .ticket import Ticket


class Waiting:
    """A request that runs while its ticket waits."""

    __slots__ = ("began", "ended", "exchange", "ticket")

    def __init__(self, exchange: Exchange, ticket: Ticket, began: float) -> None:
        self.exchange = exchange
        self.ticket = ticket
        self.began = began
        self.ended: float | None = None


class Shadow(Policy):
    """A gate in shadow mode.

    Args:
        gate: what to try out. Its refusals are what it *would have* refused.
    """

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.observes = gate.observes
        self._beside: dict[Exchange, Waiting | None] = {}
        """Running requests without a slot; ``None`` = refused."""
        self._late: dict[Exchange, float] = {}
        """Running requests that were granted theirs so many seconds late."""
        self._due: list[tuple[float, int, Ticket | tuple[Exchange, float]]] = []
        """When tickets expire, and when requests that have ended at (second) give their slot."""
        self._number = 0
        self._running = 0
        self._now = 0.0
        if isinstance(gate, AdaptiveGate):
            gate.outside = self._beside

    def enter(self, exchange: Exchange) -> Decision:
        """Let the request pass, whatever the gate says."""
        now = exchange.admitted or exchange.arrived
        self._advance(now)
        decision = self.gate.enter(exchange)
        if decision is SKIP:
            return SKIP
        self._running += 1
        if isinstance(decision, Ticket):
            waiting = self._beside[exchange] = Waiting(exchange, decision, now)
            decision.wake = partial(self._settled, waiting)
            deadline = exchange.deadline
            until = decision.expires
            self._plan(until if deadline is None else min(until, deadline), decision)
        elif decision is not None:
            self._beside[exchange] = None
        return None

    def exit(self, exchange: Exchange, now: float) -> None:
        """Note how it ended; the gate learns of it when it would have."""
        self._advance(now)
        self._running -= 1
        if exchange in self._beside:
            waiting = self._beside.pop(exchange)
            if waiting is None:
                return
            if self.observes and not exchange.status:
                self.gate.abandon(waiting.ticket, now)  # its client left, or never got an answer
            else:
                waiting.ended = now
        elif exchange in self._late:
            self._plan(now + self._late.pop(exchange), (exchange, now))
        else:
            self.gate.exit(exchange, now)

    def tick(self, now: float) -> None:
        """Do what is due."""
        self._advance(now)
        self.gate.tick(now)

    def drain(self) -> None:
        """Have the gate refuse whoever would wait."""
        self.gate.drain()

    def snapshot(self) -> GateSnapshot:
        """Return the gate's state; what it says it refused, it would have refused."""
        state = replace(self.gate.snapshot(), dry_run=True)
        # Of a server at rest nobody asks what is due, so what it would still hold is not shown.
        return state if self._running else replace(state, inflight=0, queued=0)

    def _plan(self, when: float, what: Ticket | tuple[Exchange, float]) -> None:
        self._number += 1
        heappush(self._due, (when, self._number, what))

    def _advance(self, now: float) -> None:
        due = self._due
        while due and due[0][0] <= now:
            self._now, _, what = heappop(due)
            if isinstance(what, Ticket):
                self.gate.expire(what, self._now)
            else:
                self.gate.exit(*what)
        self._now = max(self._now, now)

    def _settled(self, waiting: Waiting) -> None:
        """Go on with a request whose ticket was granted or refused."""
        exchange, ticket, ended = waiting.exchange, waiting.ticket, waiting.ended
        ticket.wake = None
        if not ticket.granted:
            if ended is None:
                self._beside[exchange] = None
        elif ended is None:
            del self._beside[exchange]
            self._late[exchange] = self._now - waiting.began
        else:
            self._plan(self._now + ended - waiting.began, (exchange, ended))
