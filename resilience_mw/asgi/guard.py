"""The ASGI driver: owns the I/O and the life of a request; its policies decide."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic

from ..context import current
from ..core.adaptive import adaptive_gates
from ..core.deadline import DeadlinePolicy
from ..core.exchange import KEY, SKIP, Exchange, Reply
from ..core.health import HealthPolicy, count_refusals
from ..core.policy import EVENT_LOOP, Decision, Exit, Policy, claim, exits_of
from ..core.snapshot import Snapshot, summarize
from ..core.ticket import Ticket
from ..core.unwind import unwind
from ..types import ASGIApp, Receive, Scope, Send
from .ahead import Ahead
from .deadlines import settle
from .exchange import ASGIExchange, current_task, send_reply
from .lifespan import Lifespan
from .upkeep import Upkeep
from .waiting import ReadAhead, wait_for


class Guard:
    """An ASGI app behind a row of policies, outermost first.

    A guard directly inside another is merged into it, so that five middlewares cost what one
    `protect()` costs. A policy that reroutes is never merged past.

    Args:
        app: an ASGI 3 app.
        policies: what decides; each at most once.

    Raises:
        ConfigError: a policy is used twice, or already by a guard for threads.

    Example:
        >>> from resilience_mw.core import Gate
        >>> async def app(scope, receive, send): ...
        >>> Guard(app, Gate(10)).snapshot().limit
        10
    """

    merges = True
    """Whether a guard around it may take over its policies."""
    protects = True
    """Whether a runner may take the app for protected; see `resilience_mw.runner.wrap`."""

    def __init__(self, app: ASGIApp, *policies: Policy) -> None:
        if isinstance(app, Guard) and app.merges and not any(p.reroutes for p in policies):
            policies += app.policies
            app = app.app
        claim(policies, EVENT_LOOP)
        self.app: ASGIApp = app
        self.policies: tuple[Policy, ...] = policies
        self.websockets = 0
        """Open websockets. They hold no slot: they live for minutes, a slot is for a request."""
        deadlines = [policy for policy in policies if isinstance(policy, DeadlinePolicy)]
        plain = [p for p in deadlines if type(p) is DeadlinePolicy and p.header is None]
        self._timeout = min((p.timeout for p in plain if p.timeout is not None), default=None)
        """Of the deadlines that need not see the request: set here, which is a call cheaper."""
        self._row = tuple(policy for policy in policies if policy not in plain)
        self._fresh = True
        """Until the first request."""
        self._enters = (self._begin, *(policy.enter for policy in self._row))
        self._exits = exits_of(policies)
        self._upkeep = Upkeep(policies)
        self._running = self._upkeep.running
        self._reroutes = any(policy.reroutes for policy in policies)
        self._timed = bool(deadlines)
        observes = any(policy.observes for policy in policies)
        self._live = self._timed or observes or bool(adaptive_gates(policies))
        self._ahead = Ahead(policies, self._upkeep.senses)
        self._lifespan = Lifespan(policies)
        count_refusals(policies)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] != "http":
            await self._serve_other(scope, receive, send)
            return
        exchange = ASGIExchange()
        exchange.scope = scope
        exchange.server_send = send
        exchange.full_path = scope["path"]
        exchange.arrived = monotonic()
        if self._live:
            upkeep = self._upkeep
            try:
                task = current_task(upkeep.loop)  # ``None``, too, if the loop is another
            except RuntimeError:
                task = None
            if task is None or upkeep.pulse.resting:
                task = upkeep.revive()
            exchange.senses = upkeep.senses
            exchange.task = task
            if self._timed:
                if self._timeout is not None:
                    exchange.deadline = exchange.arrived + self._timeout
                current.set(exchange)
            outer = scope.get(KEY)
            if outer is not None and not outer.done:
                exchange.nest(outer)
            scope[KEY] = exchange
        exits: Sequence[Exit] = self._exits
        try:
            for enter in self._enters:
                decision = enter(exchange)
                if isinstance(decision, Reply):
                    self._leave(exchange, self._before(enter), decision.reason or "reply")
                    await send_reply(decision, scope, send)
                    return
                if decision is not None:
                    # What waits or is exempt takes a coroutine of its own, and may be slower.
                    detour = await self._detour(exchange, enter, decision, receive, send)
                    if detour is None:
                        return
                    exits, receive = detour
                    break
        except BaseException:
            if not exchange.done:  # a policy raised
                self._leave(exchange, self._before(enter), "gone")
            raise
        if self._live:
            send = exchange.send
            if self._timed:
                exchange.server_receive = receive
                receive = exchange.receive
            self._running.add(exchange)
        try:
            await ((self._reroutes and exchange.target) or self.app)(scope, receive, send)
        except BaseException as error:
            if not exchange.overdue:
                raise
            await settle(exchange, error)
        else:
            if exchange.overdue:
                await settle(exchange, None)
        finally:
            if self._live:
                self._running.discard(exchange)
                self._finish(exchange)
            now = monotonic()
            left = iter(exits)
            try:
                for exit in left:
                    exit(exchange, now)
            except BaseException:
                unwind(left, exchange, now)
                raise

    async def _detour(
        self,
        exchange: ASGIExchange,
        enter: Callable[[Exchange], Decision],
        decision: Decision,
        receive: Receive,
        send: Send,
    ) -> tuple[Sequence[Exit], Receive] | None:
        """Go on from a policy that did not simply let the request pass.

        Returns what to call at the end, innermost first, and the ``receive`` to use; ``None`` if
        the request has been answered or its client has left.
        """
        entered = list(self._before(enter))
        ahead: ReadAhead | None = None
        reply: Reply | None = None
        try:
            for policy in self._row[len(entered) :]:
                if decision is None:
                    decision = policy.enter(exchange)
                if isinstance(decision, Ticket):
                    ahead = ahead or ReadAhead(receive)
                    await wait_for(decision, policy, ahead, exchange.deadline)
                    if not decision.granted:
                        reply = decision.reply
                        break
                    exchange.admitted = monotonic()
                elif isinstance(decision, Reply):
                    reply = decision
                    break
                if decision is not SKIP:
                    entered.append(policy)
                decision = None
            else:
                exits = exits_of(entered)
                return (exits, receive) if ahead is None else ((ahead.close, *exits), ahead)
        except BaseException:
            self._leave(exchange, entered, "gone", ahead)
            raise
        self._leave(exchange, entered, "gone" if reply is None else reply.reason or "reply", ahead)
        if reply is not None:
            await send_reply(reply, exchange.scope, send)
        return None

    def _begin(self, exchange: Exchange) -> Decision:
        """Take the place of a policy at the first request, and only then."""
        self._fresh = False
        self._enters = self._enters[1:]
        self._lifespan.without()
        return None

    def _before(self, enter: Callable[[Exchange], Decision]) -> Sequence[Policy]:
        """Return the policies that have been entered when it is the turn of ``enter``."""
        return self._row[: self._enters.index(enter)]

    def _leave(
        self,
        exchange: ASGIExchange,
        entered: Sequence[Policy],
        reason: str,
        ahead: ReadAhead | None = None,
    ) -> None:
        """Tell the policies that were entered that the app will not be called."""
        exchange.refused = reason
        outer = exchange.outer if self._live else exchange.scope.get(KEY)
        while outer is not None:
            outer.refused = reason  # nor is it a sample for any guard further out
            outer = outer.outer
        self._finish(exchange)
        if ahead is not None:
            ahead.close()
        if entered:
            unwind(exits_of(entered), exchange, monotonic())

    def _finish(self, exchange: ASGIExchange) -> None:
        """Hand back what was borrowed for the request, so that it is freed at once."""
        exchange.done = True
        if self._live:
            if exchange.outer is None:
                del exchange.scope[KEY]
            else:
                exchange.scope[KEY] = exchange.outer
            if self._timed:
                current.set(exchange.outer)

    async def _serve_other(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass what is no request: lifespan, websockets, and whatever else ASGI will bring."""
        if scope["type"] == "lifespan":
            await self._lifespan.serve(self.app, scope, receive, send)
            self.close()
            return
        websocket = scope["type"] == "websocket"
        self.websockets += websocket
        try:
            await self.app(scope, receive, send)
        finally:
            self.websockets -= websocket

    def ahead(self, scope: Scope, send: Send) -> Reply | None:
        """Answer an HTTP request without a task, if that is certain already; see `Ahead`."""
        if self._fresh:
            self._lifespan.begin()
        if self._live and self._upkeep.pulse.resting:
            return None  # nothing runs, and so nothing is known of the loop
        return self._ahead(scope, send)

    def snapshot(self) -> Snapshot:
        """Return the state of the guard and of each of its policies."""
        parts = tuple(policy.snapshot() for policy in self.policies)
        return summarize(
            parts,
            websockets=self.websockets,
            lag=self._upkeep.senses.lag.read(monotonic()),
            sources=self._upkeep.senses.sources(),
        )

    def drain(self) -> None:
        """Turn readiness to 503 and refuse whoever waits; requests are still served.

        May be called from any thread: readiness turns at once, the rest in the guard's own loop.
        """
        for policy in self.policies:
            if isinstance(policy, HealthPolicy):
                policy.drain()
            else:
                self._upkeep.run(policy.drain)

    def close(self) -> None:
        """Stop the tick and the checks, and remove our measurements from the loop."""
        self._upkeep.close()
        self._lifespan.close()
