"""The one interface: let a request pass, answer it, make it wait, or reroute it; learn its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..exceptions import ConfigError
from .exchange import Exchange, Reply, Skip, busy
from .ticket import Ticket

Decision = Reply | Ticket | Skip | None
Exit = Callable[[Exchange, float], None]


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
    exit: Exit | None = None
    driver: str | None = None
    """The kind of driver that holds this policy; see `claim`."""

    def enter(self, exchange: Exchange) -> Decision:
        """Decide about a request that has arrived."""
        raise NotImplementedError

    def ahead(self, exchange: Exchange) -> Reply | None:
        """Answer a request before the server has begun a task for it, if that is certain already.

        Takes nothing: ``None`` = `enter` decides as ever. A subclass with an `enter` of its own is
        asked only if it has an `ahead` of its own, too.
        """
        return None

    def expire(self, ticket: Ticket, now: float) -> None:
        """End the wait of ``ticket``: its time is up."""
        ticket.refuse(busy("queue_timeout"))

    def abandon(self, ticket: Ticket, now: float) -> None:
        """Forget ``ticket``: its client has left. A slot it was granted meanwhile is passed on."""
        if not ticket.abandon():
            ticket.give_back()

    def tick(self, now: float) -> None:
        """Do what is due; a driver calls it every few dozen milliseconds while it is busy."""

    def drain(self) -> None:
        """Prepare to stop: refuse whoever waits, turn readiness."""

    def snapshot(self) -> object:
        """Return the state as a frozen dataclass of plain numbers."""
        return None


def answers_ahead(policy: Policy) -> bool:
    """Whether `Policy.ahead` of ``policy`` stands for its `Policy.enter`."""
    ahead, enter = (
        next(kind for kind in type(policy).__mro__ if name in vars(kind))
        for name in ("ahead", "enter")
    )
    return ahead is not Policy and issubclass(ahead, enter)


EVENT_LOOP = "event loop"
THREADS = "threads"


def claim(policies: Sequence[Policy], driver: str) -> None:
    """Reserve ``policies`` for one kind of driver, `EVENT_LOOP` or `THREADS`.

    Raises:
        ConfigError: a policy is there twice (it would be left twice), or is held by the other
            kind of driver: one locks and the other does not.
    """
    for position, policy in enumerate(policies):
        name = type(policy).__name__
        if any(policy is other for other in policies[:position]):
            raise ConfigError(f"policies must be distinct, got the same {name} twice")
        if policy.driver not in (None, driver):
            raise ConfigError(
                f"a policy must stay with one kind of driver, got {name} used by {driver} "
                f"and by {policy.driver}"
            )
    for policy in policies:
        policy.driver = driver


def exits_of(policies: Sequence[Policy]) -> tuple[Exit, ...]:
    """Return what to call at the end of a request that entered ``policies``, innermost first."""
    return tuple(policy.exit for policy in reversed(policies) if policy.exit is not None)
