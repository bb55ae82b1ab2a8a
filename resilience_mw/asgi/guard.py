"""The ASGI driver: owns the I/O and the life of a request; its policies decide."""

from __future__ import annotations

import time
from asyncio import AbstractEventLoop, current_task, get_running_loop
from collections.abc import Callable, Sequence

from ..context import current
from ..core.adaptive import AdaptiveGate
from ..core.deadline import DeadlinePolicy
from ..core.exchange import SKIP, Exchange, Reply
from ..core.policy import EVENT_LOOP, Decision, Policy, claim
from ..core.snapshot import Snapshot, summarize
from ..core.ticket import Ticket
from ..types import ASGIApp, Receive, Scope, Send
from .deadlines import Watch, settle
from .exchange import ASGIExchange, send_reply
from .lifespan import Lifespan
from .pulse import Pulse
from .senses import LoopSenses
from .waiting import ReadAhead, wait_for

Exit = Callable[[Exchange, float], None]

monotonic = time.monotonic


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
        self.app = app
        self.policies = policies
        self.websockets = 0
        """Open websockets. They hold no slot: they live for minutes, a slot is for a request."""
        self._enters = tuple(policy.enter for policy in policies)
        self._exits = _exits(policies)
        self._gates = [policy for policy in policies if isinstance(policy, AdaptiveGate)]
        deadlines = [policy for policy in policies if isinstance(policy, DeadlinePolicy)]
        self._watch = Watch(deadlines) if deadlines else None
        self._receives = self._watch is not None and self._watch.receive_timeout > 0
        self._observes = bool(deadlines) or any(policy.observes for policy in policies)
        self._live = bool(deadlines or self._gates)
        self._loop: AbstractEventLoop | None = None
        self._pulse = Pulse(self._beat)
        self._senses = LoopSenses(self._gates)
        self._lifespan = Lifespan(policies)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] != "http":
            await self._serve_other(scope, receive, send)
            return
        exchange = ASGIExchange()
        exchange.scope = scope
        exchange.server_send = send
        exchange.arrived = monotonic()
        loop = None
        if self._live:
            loop = get_running_loop()
            if loop is not self._loop or self._pulse.resting:
                self._revive(loop)
            outer = current.get()
            if outer is not None and not outer.done:
                exchange.outer = outer
                exchange.deadline = outer.deadline
            current.set(exchange)
        exits = self._exits
        for enter in self._enters:
            decision = enter(exchange)
            if decision is not None:
                # Everything but the happy path is a coroutine of its own, and may be slower.
                detour = await self._detour(exchange, enter, decision, receive)
                if detour is None:
                    return
                exits, receive = detour
                break
        if self._observes:
            send = exchange.send
            if self._watch is not None:
                exchange.task = current_task(loop)
                if self._receives:
                    exchange.server_receive = receive
                    receive = exchange.receive
                self._watch.running[exchange] = None
        try:
            await (exchange.target or self.app)(scope, receive, send)
        except BaseException as error:
            if exchange.answering is None:
                raise
            await settle(exchange, error)
        else:
            if exchange.answering is not None:
                await settle(exchange, None)
        finally:
            exchange.done = True
            if self._watch is not None:
                self._watch.running.pop(exchange, None)
            now = monotonic()
            for exit in exits:
                exit(exchange, now)

    async def _detour(
        self,
        exchange: ASGIExchange,
        enter: Callable[[Exchange], Decision],
        decision: Decision,
        receive: Receive,
    ) -> tuple[Sequence[Exit], Receive] | None:
        """Go on from a policy that did not simply let the request pass.

        Returns what to call at the end, innermost first, and the ``receive`` to use; ``None`` if
        the request has been answered or its client has left.
        """
        self._lifespan.without()
        position = self._enters.index(enter)
        entered = list(self.policies[:position])
        ahead: ReadAhead | None = None
        reply: Reply | None = None
        try:
            for policy in self.policies[position:]:
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
            self._leave(exchange, entered, ahead, "gone")
            raise
        self._leave(exchange, entered, ahead, "gone" if reply is None else reply.reason or "reply")
        if reply is not None:
            await send_reply(reply, exchange.scope, exchange.server_send)
        return None

    @staticmethod
    def _leave(
        exchange: ASGIExchange, entered: Sequence[Policy], ahead: ReadAhead | None, reason: str
    ) -> None:
        """Tell the policies that were entered that the app will not be called."""
        exchange.done = True
        exchange.refused = reason
        if exchange.outer is not None:
            exchange.outer.refused = reason  # nor is it a sample for a guard further out
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

    def _revive(self, loop: AbstractEventLoop) -> None:
        """Start what needs the running loop, once a loop and again after a rest."""
        if loop is not self._loop:
            self._loop = loop
            self._senses.attach(loop)
            self._lifespan.without()
        self._pulse.start(loop)

    def _beat(self, now: float) -> bool:
        """Do what is due; returns whether anything is running or waiting."""
        busy = self._watch is not None and self._watch.beat(now)
        for gate in self._gates:
            gate.tick(now)
            busy = busy or gate.inflight > 0
        return busy

    def snapshot(self) -> Snapshot:
        """Return the state of the guard and of each of its policies."""
        parts = tuple(policy.snapshot() for policy in self.policies)
        return summarize(parts, self.websockets)

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
