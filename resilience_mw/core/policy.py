"""The one interface: let a request pass, answer it, make it wait, or reroute it; learn its end."""

from __future__ import annotations

from collections.abc import Callable

from .exchange import Exchange, Reply, Skip
from .ticket import Ticket

Decision = Reply | Ticket | Skip | None


class Policy:
    """What a middleware decides, without I/O.

    A driver calls `enter` in order and `exit` in reverse order, exactly once, for those whose
    `enter` let the request pass (returned ``None``) or whose ticket was granted.

    Subclasses set:
        observes: wants ``exchange.status`` and ``exchange.answered_at``.
        reroutes: may set ``exchange.target``. Guards never merge past such a policy, because a
            gate further in would then count requests that it should not see.
        deadlines: sets ``exchange.deadline``, which the driver enforces.
        exit: told how the request ended; left ``None`` when there is nothing to do, so that a
            driver need not call it.
    """

    observes = False
    reroutes = False
    deadlines = False
    exit: Callable[[Exchange, float], None] | None = None

    def enter(self, exchange: Exchange) -> Decision:
        """Decide about a request that has arrived."""
        raise NotImplementedError

    def expire(self, ticket: Ticket, now: float) -> None:
        """End the wait of ``ticket``: its time is up."""

    def abandon(self, ticket: Ticket, now: float) -> None:
        """Forget ``ticket``: its client has left. A slot it was granted meanwhile is passed on."""

    def tick(self, now: float) -> None:
        """Do what is due; a driver calls it every few dozen milliseconds while it is busy."""

    def drain(self) -> None:
        """Prepare to stop: refuse whoever waits, turn readiness."""

    def snapshot(self) -> object:
        """Return the state as a frozen dataclass of plain numbers."""
        return None
