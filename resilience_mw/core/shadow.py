"""Try a gate out: decide and count as it would, and refuse nothing."""

from __future__ import annotations

from dataclasses import replace

from .exchange import SKIP, Exchange
from .gate import Gate
from .policy import Decision, Policy
from .snapshot import GateSnapshot
from .ticket import Ticket


class Shadow(Policy):
    """A gate in shadow mode: every request passes, and the gate plays along beside it.

    What the gate would refuse goes on, without a slot in its books. What it would queue goes on
    at once, while its ticket waits; if the request ends before the ticket is granted, it leaves
    the queue. The counts are thus what the gate would have done to this very traffic, as far as
    that can be known: the server was busier than it would have been.

    Args:
        gate: what to try out. Its refusals are what it *would have* refused.
    """

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.observes = gate.observes
        self._beside: dict[Exchange, Ticket | None] = {}

    def enter(self, exchange: Exchange) -> Decision:
        """Let the request pass, whatever the gate says."""
        decision = self.gate.enter(exchange)
        if decision is SKIP:
            return SKIP
        if decision is not None:
            self._beside[exchange] = decision if isinstance(decision, Ticket) else None
        return None

    def exit(self, exchange: Exchange, now: float) -> None:
        """Tell the gate how it ended, if the gate had let it in."""
        if exchange not in self._beside:
            self.gate.exit(exchange, now)
            return
        ticket = self._beside.pop(exchange)
        if ticket is None:
            return
        if ticket.granted:
            self.gate.exit(exchange, now)
        elif now >= ticket.expires:
            self.gate.expire(ticket, now)
        else:
            self.gate.abandon(ticket, now)

    def tick(self, now: float) -> None:
        """End the wait of tickets whose time is up."""
        for ticket in list(self._beside.values()):
            if ticket is not None and ticket.waiting and now >= ticket.expires:
                self.gate.expire(ticket, now)
        self.gate.tick(now)

    def snapshot(self) -> GateSnapshot:
        """Return the gate's state; what it says it refused, it would have refused."""
        return replace(self.gate.snapshot(), dry_run=True)
