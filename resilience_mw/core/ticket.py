"""A place in a queue, and who may take it away.

| from | grant | refuse | abandon | give_back |
|---|---|---|---|---|
| ``WAITING`` | ``GRANTED`` | ``REFUSED`` | ``ABANDONED`` | no |
| ``GRANTED`` | no | no | no | ``ABANDONED`` |
| ``REFUSED``, ``ABANDONED`` | no | no | no | no |

Rules:
1. A ticket leaves ``WAITING`` exactly once; the first of grant, refuse, abandon wins.
2. Whoever asks second is told so (False) and changes nothing.
3. A granted ticket owns a slot. Its owner exits the gate once it has run, or gives the slot back,
   once, if it never did.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from .exchange import Reply


class TicketState(Enum):
    """Where a ticket stands."""

    WAITING = "waiting"
    GRANTED = "granted"
    REFUSED = "refused"
    ABANDONED = "abandoned"


class Ticket:
    """A request's place in a gate's queue.

    The driver sets `wake`, then waits; the gate grants or refuses and calls `wake` once.

    Args:
        queued_at: when the wait began (monotonic seconds).
        expires: when the wait is over (monotonic seconds).
    """

    __slots__ = ("expires", "queued_at", "reply", "state", "wake")

    def __init__(self, queued_at: float, expires: float) -> None:
        self.queued_at = queued_at
        self.expires = expires
        self.state = TicketState.WAITING
        self.reply: Reply | None = None
        self.wake: Callable[[], object] | None = None

    @property
    def waiting(self) -> bool:
        """Whether nothing has been decided yet."""
        return self.state is TicketState.WAITING

    @property
    def granted(self) -> bool:
        """Whether this ticket owns a slot."""
        return self.state is TicketState.GRANTED

    def grant(self) -> bool:
        """Give the slot to this ticket; returns False if it was decided before."""
        return self._settle(TicketState.GRANTED)

    def refuse(self, reply: Reply) -> bool:
        """End the wait with ``reply``; returns False if it was decided before."""
        if self.state is not TicketState.WAITING:
            return False
        self.reply = reply
        return self._settle(TicketState.REFUSED)

    def abandon(self) -> bool:
        """Leave the queue because the client left; returns False if it was decided before."""
        if self.state is not TicketState.WAITING:
            return False
        self.state = TicketState.ABANDONED  # whoever abandons is awake: nobody to wake
        return True

    def give_back(self) -> bool:
        """Leave after a grant, without having run; returns False if there is no slot to return."""
        if self.state is not TicketState.GRANTED:
            return False
        self.state = TicketState.ABANDONED
        return True

    def _settle(self, state: TicketState) -> bool:
        if self.state is not TicketState.WAITING:
            return False
        self.state = state
        if self.wake is not None:
            self.wake()
        return True
