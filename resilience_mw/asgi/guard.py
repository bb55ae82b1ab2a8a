"""The ASGI driver: owns the I/O and the life of a request; its policies decide."""

from __future__ import annotations

from asyncio import AbstractEventLoop, Task, get_running_loop
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any

from ..context import current
from ..core.adaptive import adaptive_gates
from ..core.deadline import DeadlinePolicy
from ..core.exchange import SKIP, Exchange, Reply
from ..core.policy import EVENT_LOOP, Decision, Policy, claim
from ..core.snapshot import Snapshot, summarize
from ..core.ticket import Ticket
from ..types import ASGIApp, Receive, Scope, Send
from .ahead import Ahead
from .deadlines import Watch, settle
from .exchange import ASGIExchange, current_task, send_reply
from .lifespan import Lifespan
from .pulse import Pulse
from .senses import LoopSenses
from .waiting import ReadAhead, wait_for

Exit = Callable[[Exchange, float], None]

KEY = "resilience_mw"
"""Where the scope holds the exchange, for guards further in and for whoever is curious."""

STREAM_AFTER = 1.0
"""Seconds after its start from which a response that still goes on is no work but a stream."""


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

    def __init__(self, app: ASGIApp, *policies: Policy) -> None:
        if isinstance(app, Guard) and not any(policy.reroutes for policy in policies):
            policies += app.policies
            app = app.app
        claim(policies, EVENT_LOOP)
        self.app: ASGIApp = app
        self.policies: tuple[Policy, ...] = policies
        self.websockets = 0
        """Open websockets. They hold no slot: they live for minutes, a slot is for a request."""
        gates = adaptive_gates(policies)
        deadlines = [policy for policy in policies if isinstance(policy, DeadlinePolicy)]
        plain = [policy for policy in deadlines if policy.header is None]
        self._timeout = min((p.timeout for p in plain if p.timeout is not None), default=None)
        """Of the deadlines that need not see the request: set here, which is a call cheaper."""
        self._row = tuple(policy for policy in policies if policy not in plain)
        self._enters = tuple(policy.enter for policy in self._row)
        self._exits = _exits(policies)
        self._gates = gates
        self._running: set[ASGIExchange] = set()
        self._watch = Watch(deadlines, self._running) if deadlines else None
        self._reroutes = any(policy.reroutes for policy in policies)
        self._live = bool(deadlines or gates) or any(policy.observes for policy in policies)
        self._loop: AbstractEventLoop | None = None
        self._senses = LoopSenses(gates)
        self._ahead = Ahead(policies, self._senses)
        self._pulse = Pulse(self._beat, self._senses.lag)
        self._lifespan = Lifespan(policies)

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
            try:
                task = current_task(self._loop)  # ``None``, too, if the loop is another
            except RuntimeError:
                task = None
            if task is None or self._pulse.resting:
                task = self._revive()
            outer = scope.get(KEY)
            scope[KEY] = exchange
            exchange.senses = self._senses
            exchange.task = task
            if self._watch is not None:
                if self._timeout is not None:
                    exchange.deadline = exchange.arrived + self._timeout
                current.set(exchange)
            if outer is not None and not outer.done:
                exchange.nest(outer)
        exits: Sequence[Exit] = self._exits
        try:
            for enter in self._enters:
                decision = enter(exchange)
                if decision is not None:
                    # What is not the happy path is a coroutine of its own, and may be slower.
                    detour = await self._detour(exchange, enter, decision, receive, send)
                    if detour is None:
                        return
                    exits, receive = detour
                    break
        except BaseException:
            if not exchange.done:  # a policy raised: those before it have been entered
                self._leave(exchange, self._row[: self._enters.index(enter)], "gone")
            raise
        if self._live:
            send = exchange.send
            if self._watch is not None:
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
            now = 0.0
            if self._live:
                exchange.done = True
                self._running.discard(exchange)
                now = monotonic()
            for exit in exits:
                exit(exchange, now)

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
        self._lifespan.without()
        position = self._enters.index(enter)
        if isinstance(decision, Reply):
            self._leave(exchange, self._row[:position], decision.reason or "reply")
            await send_reply(decision, exchange.scope, send)
            return None
        entered = list(self._row[:position])
        ahead: ReadAhead | None = None
        reply: Reply | None = None
        try:
            for policy in self._row[position:]:
                if decision is None:
                    decision = policy.enter(exchange)
                if isinstance(decision, Ticket):
                    ahead = ahead or ReadAhead(receive)
                    await wait_for(decision, policy, ahead)
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
                exits = _exits(entered)
                return (exits, receive) if ahead is None else ((ahead.close, *exits), ahead)
        except BaseException:
            self._leave(exchange, entered, "gone", ahead)
            raise
        self._leave(exchange, entered, "gone" if reply is None else reply.reason or "reply", ahead)
        if reply is not None:
            await send_reply(reply, exchange.scope, send)
        return None

    def _leave(
        self,
        exchange: ASGIExchange,
        entered: Sequence[Policy],
        reason: str,
        ahead: ReadAhead | None = None,
    ) -> None:
        """Tell the policies that were entered that the app will not be called."""
        exchange.done = True
        exchange.refused = reason
        outer = exchange.outer if self._live else exchange.scope.get(KEY)
        if outer is not None:
            outer.refused = reason  # nor is it a sample for a guard further out
        if ahead is not None:
            ahead.close()
        now = monotonic()
        for exit in _exits(entered):
            exit(exchange, now)

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
        if self._live and self._pulse.resting:
            return None  # nothing runs, and so nothing is known of the loop
        return self._ahead(scope, send)

    def _revive(self) -> Task[Any] | None:
        """Start what needs the running loop: once a loop, and again after a rest."""
        try:
            loop = get_running_loop()
        except RuntimeError:
            return None  # not asyncio: gates still count, but nobody enforces deadlines
        if loop is not self._loop:
            self._loop = loop
            self._senses.attach(loop)
            self._lifespan.without()
            self._pulse.stop()
        if self._pulse.resting:
            self._pulse.start(loop)
        return current_task(loop)

    def _beat(self, now: float) -> bool:
        """Do what is due; returns whether anything is running or waiting."""
        if self._watch is not None:
            self._watch.beat(now)
        started_by = now - STREAM_AFTER
        for gate in self._gates:
            for exchange in self._running:
                if 0.0 < exchange.answered_at < started_by:
                    gate.stream(exchange)
        for policy in self.policies:
            policy.tick(now)
        return bool(self._running) or any(gate.queued for gate in self._gates)

    def snapshot(self) -> Snapshot:
        """Return the state of the guard and of each of its policies."""
        parts = tuple(policy.snapshot() for policy in self.policies)
        return summarize(
            parts,
            websockets=self.websockets,
            lag=self._senses.lag.read(monotonic()),
            sources=self._senses.sources(),
        )

    def drain(self) -> None:
        """Turn readiness to 503 and refuse whoever waits; requests are still served."""
        for policy in self.policies:
            policy.drain()

    def close(self) -> None:
        """Stop the tick and remove our measurements from the loop."""
        self._pulse.stop()
        self._senses.detach()
        self._loop = None


def _exits(policies: Sequence[Policy]) -> tuple[Exit, ...]:
    """What to call at the end of a request, innermost first."""
    return tuple(policy.exit for policy in reversed(policies) if policy.exit is not None)
