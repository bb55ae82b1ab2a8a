"""Learn from the lifespan scope when the app has started and when it stops."""

from __future__ import annotations

import logging
from asyncio import sleep
from collections.abc import Sequence

from ..core.health import FIRST_ANSWERS, HealthPolicy
from ..core.lifecycle import State
from ..core.policy import Policy
from ..exceptions import ConfigError
from ..signals.running import running_loop
from ..types import ASGIApp, Message, Receive, Scope, Send

logger = logging.getLogger("resilience_mw")


class Lifespan:
    """Advances the lifecycle of a guard's health policies, and has checks asked meanwhile.

    Args:
        policies: those of the guard.
    """

    def __init__(self, policies: Sequence[Policy]) -> None:
        probes = [policy for policy in policies if isinstance(policy, HealthPolicy)]
        self._lifecycles = [policy.lifecycle for policy in probes]
        self._checks = [policy.checks for policy in probes if policy.checks is not None]
        for checks in self._checks:
            checks.expect()
        self._apart = [policy.apart for policy in probes if policy.apart is not None]
        self._seen = False

    async def serve(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the lifespan scope on, watching what is said in it."""
        self._seen = True
        answered = False
        try:
            # Before the app starts, which may take long: whoever asks is told so.
            self._open()
        except ConfigError as error:
            await receive()
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return

        async def receive_watched() -> Message:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                # Late: servers close their sockets first. Readiness turns at the signal, if the
                # runner is there to hear it; here we only make sure it has turned.
                self._advance(State.DRAINING)
                self.close()  # what the checks go through is about to be closed, too
            return message

        async def send_watched(message: Message) -> None:
            nonlocal answered
            if message["type"] == "lifespan.startup.complete":
                await self._first_answers()
            await send(message)
            answered = True
            if message["type"] == "lifespan.startup.complete":
                for lifecycle in self._lifecycles:
                    lifecycle.restart()
                self._advance(State.READY)
                self.begin()
            elif message["type"].startswith("lifespan.shutdown."):
                self._advance(State.STOPPED)

        try:
            await app(scope, receive_watched, send_watched)
        finally:
            # An app that knows no lifespan raises or just returns, and the server goes on without.
            self._seen = answered
            if answered:
                for apart in self._apart:
                    apart.close()
            elif self._apart:
                self._advance(State.READY)  # no request need ever come before a probe apart

    def without(self) -> None:
        """Count as started at the first request, on a server or for an app without lifespan."""
        if not self._seen:
            self._advance(State.READY)
            try:
                self._open()
            except ConfigError as error:
                logger.error("%s", error)  # too late to refuse to start
        self.begin()

    def close(self) -> None:
        """Stop asking checks."""
        for checks in self._checks:
            checks.close()

    def begin(self) -> None:
        """Have the checks of an app that has started asked from now on."""
        if self._checks and all(lifecycle.started for lifecycle in self._lifecycles):
            loop = running_loop()
            for checks in self._checks:
                checks.start(loop)

    async def _first_answers(self) -> None:
        """Begin to ask, and wait a moment for what the first probe will want to know."""
        loop = running_loop()
        if loop is None or not self._checks:
            return
        for checks in self._checks:
            checks.start(loop)
        until = loop.time() + FIRST_ANSWERS
        while loop.time() < until and not all(  # noqa: ASYNC110 - another thread knows
            checks.known for checks in self._checks
        ):
            await sleep(0.005)

    def _open(self) -> None:
        for apart in self._apart:
            apart.open(running_loop())

    def _advance(self, state: State) -> None:
        for lifecycle in self._lifecycles:
            lifecycle.advance(state)
