"""The WSGI driver: owns the lock, the waiting and the life of a request; its policies decide."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from functools import partial

from ..context import current
from ..core.adaptive import adaptive_gates
from ..core.deadline import DeadlinePolicy
from ..core.exchange import KEY, Reply, busy
from ..core.health import HealthPolicy, count_refusals
from ..core.lifecycle import State
from ..core.policy import THREADS, Exit, Policy, claim, exits_of
from ..core.snapshot import Snapshot, summarize
from ..core.ticket import Ticket
from ..core.unwind import unwind
from ..types import Environ, StartResponse, WSGIApp
from .body import watch
from .exchange import WSGIExchange, answer, client_left
from .section import shared_section
from .senses import ThreadSenses

GONE = busy("gone")
"""What a client gets that has left: WSGI must answer something, though nobody will read it but
whoever counts errors, and to them it is a refusal."""


LOOK_AROUND = 0.1
"""Seconds a waiting thread sleeps before it looks whether its client left or a window ended."""


class Guard:
    """A WSGI app behind a row of policies, outermost first.

    It sees only requests that already own one of the server's threads: a limit that is not below
    the number of threads never acts, and a request that waits here keeps its thread.

    A guard directly inside another is merged into it, unless a policy of the outer one reroutes.

    Args:
        app: a WSGI app.
        policies: what decides; each at most once.

    Raises:
        ConfigError: a policy is used twice, or already by a guard on an event loop.

    Example:
        >>> from resilience_mw.core import Gate
        >>> def app(environ, start_response): ...
        >>> Guard(app, Gate(10)).snapshot().limit
        10
    """

    merges = True
    """Whether a guard around it may take over its policies."""
    protects = True
    """Whether a runner may take the app for protected; see `resilience_mw.runner.wrap`."""

    def __init__(self, app: WSGIApp, *policies: Policy) -> None:
        if isinstance(app, Guard) and app.merges and not any(p.reroutes for p in policies):
            policies += app.policies
            app = app.app
        claim(policies, THREADS)
        self.app: WSGIApp = app
        self.policies: tuple[Policy, ...] = policies
        self._section = shared_section()
        self._exits = exits_of(policies)
        self._deadlines = [p for p in policies if isinstance(p, DeadlinePolicy)]
        self._observes = bool(self._deadlines) or any(p.observes for p in policies)
        gates = adaptive_gates(policies)
        self._live = bool(gates or self._deadlines)
        self._senses = ThreadSenses(gates)
        for policy in policies:
            if isinstance(policy, HealthPolicy):
                policy.lifecycle.advance(State.READY)  # WSGI knows no start-up but the import
                if policy.checks is not None:
                    policy.checks.settle()
                if policy.apart is not None:
                    policy.apart.arm()
        count_refusals(policies)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Serve one WSGI request."""
        exchange = WSGIExchange()
        exchange.environ = environ
        exchange.arrived = now = time.monotonic()
        if self._live:
            exchange.queue_wait = self._senses.queue_wait(environ, now)
            outer = environ.get(KEY)
            if outer is not None and not outer.done:
                exchange.nest(outer)
            environ[KEY] = exchange
            current.set(exchange)
        exits = self._admit(exchange)
        if isinstance(exits, Reply):
            return answer(exits, environ, start_response)
        if self._observes:
            exchange.server_start_response = start_response
            start_response = exchange.start_response
        end = partial(self._end, exchange, exits)
        try:
            iterable = (exchange.target or self.app)(environ, start_response)
        except BaseException:
            end()
            raise
        return watch(iterable, environ, end)

    def _admit(self, exchange: WSGIExchange) -> Sequence[Exit] | Reply:
        """Ask the policies; returns what to call at the end, innermost first, or the answer."""
        entered: list[Policy] = []
        reply: Reply | None = None
        with self._section:
            try:
                for policy in self.policies:
                    decision = policy.enter(exchange)
                    if decision is None:
                        entered.append(policy)
                    elif isinstance(decision, Ticket):
                        reply = self._wait(decision, policy, exchange)
                        if reply is not None:
                            break
                        entered.append(policy)
                    elif isinstance(decision, Reply):
                        reply = decision
                        break
                else:
                    if self._live:
                        self._senses.enter(exchange.arrived)
                    everyone = len(entered) == len(self.policies)
                    return self._exits if everyone else exits_of(entered)
            except BaseException:
                self._leave(exchange, entered, "gone")
                raise
            self._leave(exchange, entered, reply.reason or "reply")
        return reply

    def _wait(self, ticket: Ticket, policy: Policy, exchange: WSGIExchange) -> Reply | None:
        """Wait in a gate's queue, giving up the lock meanwhile as a condition variable does.

        Returns ``None`` when granted, or the answer.
        """
        woken = threading.Lock()
        woken.acquire()
        ticket.wake = woken.release
        until = ticket.expires
        if exchange.deadline is not None and exchange.deadline < until:
            until = exchange.deadline
        try:
            while ticket.waiting:
                left = until - time.monotonic()
                if left <= 0.0:
                    policy.expire(ticket, until)
                    break
                self._section.release()
                try:
                    woken.acquire(timeout=min(left, LOOK_AROUND))
                    gone = client_left(exchange.environ)
                finally:
                    self._section.acquire()
                now = time.monotonic()
                if gone:
                    policy.abandon(ticket, now)
                    return GONE
                policy.tick(now)
        except BaseException:
            policy.abandon(ticket, time.monotonic())
            raise
        exchange.admitted = time.monotonic()
        return ticket.reply

    def _leave(self, exchange: WSGIExchange, entered: Sequence[Policy], reason: str) -> None:
        """Tell the policies that were entered that the app will not be called."""
        exchange.done = True
        exchange.refused = reason
        outer = exchange.outer if self._live else exchange.environ.get(KEY)
        while outer is not None:
            outer.refused = reason  # nor is it a sample for a guard further out
            outer = outer.outer
        if self._live:
            self._forget(exchange)
        # Due, not done here: a policy that fails at its exit must not cost the client its answer.
        self._section.soon(partial(unwind, exits_of(entered), exchange, time.monotonic()))

    def _end(self, exchange: WSGIExchange, exits: Sequence[Exit]) -> None:
        """End a request that was admitted: once, whoever asks and however often."""
        self._section.soon(partial(self._finish, exchange, exits))

    def _finish(self, exchange: WSGIExchange, exits: Sequence[Exit]) -> None:
        if exchange.done:
            return
        exchange.done = True
        now = time.monotonic()
        if self._deadlines and exchange.deadline is not None:
            # Nobody can stop a thread: all that is left is to count it.
            self._deadlines[0].overrun += (exchange.answered_at or now) > exchange.deadline
        if self._live:
            self._senses.exit(now)
            self._forget(exchange)
        unwind(exits, exchange, now)

    def _forget(self, exchange: WSGIExchange) -> None:
        """Undo what `__call__` left behind: it would keep the environ alive for long."""
        if exchange.outer is None or exchange.outer.done:
            exchange.environ.pop(KEY, None)
        else:
            exchange.environ[KEY] = exchange.outer
        if current.get() is exchange:
            current.set(exchange.outer)

    def snapshot(self) -> Snapshot:
        """Return the state of the guard and of each of its policies."""
        with self._section:
            parts = tuple(policy.snapshot() for policy in self.policies)
            return summarize(parts, sources=self._senses.sources())

    def drain(self) -> None:
        """Turn readiness to 503 and refuse whoever waits; requests are still served.

        A signal handler may call it.
        """
        for policy in self.policies:
            self._section.soon(policy.drain)

    def close(self) -> None:
        """Stop asking the health checks; the next probe begins anew. Close `health.port`."""
        for policy in self.policies:
            if isinstance(policy, HealthPolicy):
                if policy.checks is not None:
                    policy.checks.close()
                if policy.apart is not None:
                    policy.apart.close()
