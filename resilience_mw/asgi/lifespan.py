"""Learn from the lifespan scope when the app has started and when it stops."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.health import HealthPolicy
from ..core.lifecycle import State
from ..core.policy import Policy
from ..types import ASGIApp, Message, Receive, Scope, Send


class Lifespan:
    """Advances the lifecycle of a guard's health policies.

    Args:
        policies: those of the guard.
    """

    def __init__(self, policies: Sequence[Policy]) -> None:
        self._lifecycles = [p.lifecycle for p in policies if isinstance(p, HealthPolicy)]
        self._seen = False

    async def serve(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the lifespan scope on, watching what is said in it."""
        self._seen = True
        answered = False

        async def receive_watched() -> Message:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                # Late: servers close their sockets first. Readiness turns at the signal, if the
                # runner is there to hear it; here we only make sure it has turned.
                self._advance(State.DRAINING)
            return message

        async def send_watched(message: Message) -> None:
            nonlocal answered
            await send(message)
            answered = True
            if message["type"] == "lifespan.startup.complete":
                for lifecycle in self._lifecycles:
                    lifecycle.restart()
                self._advance(State.READY)
            elif message["type"].startswith("lifespan.shutdown."):
                self._advance(State.STOPPED)

        try:
            await app(scope, receive_watched, send_watched)
        finally:
            # An app that knows no lifespan raises or just returns, and the server goes on without.
            self._seen = answered

    def without(self) -> None:
        """Count as started at the first request, on a server or for an app without lifespan."""
        if not self._seen:
            self._advance(State.READY)

    def _advance(self, state: State) -> None:
        for lifecycle in self._lifecycles:
            lifecycle.advance(state)
