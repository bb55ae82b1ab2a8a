"""Answers that a server can give in its protocol, before it has begun a task for the request."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import monotonic

from ..core.deadline import DeadlinePolicy
from ..core.exchange import Exchange, Reply
from ..core.policy import Policy, answers_ahead
from ..types import Scope, Send
from .exchange import ASGIExchange
from .senses import LoopSenses


class Ahead:
    """Asks a guard's policies for answers that are certain already.

    A probe need not wait for a turn of a busy loop, and a refusal costs less than half as much.
    What is answered here is counted like any other answer, and leaves nothing to clean up.

    Args:
        policies: those of the guard.
        senses: tells how long a request has waited.
    """

    def __init__(self, policies: Sequence[Policy], senses: LoopSenses) -> None:
        self._row = tuple(_row(policies))
        self._senses = senses

    def __call__(self, scope: Scope, send: Send) -> Reply | None:
        """Return the answer, or ``None``: call the guard as ever.

        Args:
            scope: of an HTTP request.
            send: the server's, or anything that leads to its socket; never called.
        """
        exchange = ASGIExchange()
        exchange.scope = scope
        exchange.server_send = send
        exchange.full_path = scope["path"]
        exchange.arrived = monotonic()
        exchange.senses = self._senses
        for ahead in self._row:
            reply = ahead(exchange)
            if reply is not None:
                return reply
        return None


def _row(policies: Sequence[Policy]) -> Iterator[Callable[[Exchange], Reply | None]]:
    """Go no further than to a policy that cannot answer ahead, and so may let nobody past."""
    for policy in policies:
        if isinstance(policy, DeadlinePolicy):
            continue
        if not answers_ahead(policy):
            return
        yield policy.ahead
