"""Start and stop two apps as if they were one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import anyio

from ..types import ASGIApp, Message, Receive, Scope, Send

logger = logging.getLogger("resilience_mw")

LAST_WORDS = 1.0
"""Seconds for which an app may go on after it has said that it stopped."""


class WithState:
    """An app whose requests see its own state over that of the server.

    Args:
        app: an ASGI app.
        state: what its start-up left.
    """

    def __init__(self, app: ASGIApp, state: Mapping[str, Any]) -> None:
        self.app = app
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        scope = {**scope, "state": {**scope.get("state", {}), **self._state}}
        await self.app(scope, receive, send)


async def serve_both(
    old: ASGIApp,
    new: ASGIApp,
    serve_new_by: Callable[[ASGIApp], object],
    scope: Scope,
    receive: Receive,
    send: Send,
) -> None:
    """Serve the lifespan of one server for two apps.

    Both start, side by side, and both stop. If one fails to start the server is told so, and the
    other one is stopped again: half a deployment should be seen before it serves. An app that
    knows no lifespan takes no part.

    The old app shares its state with the server, as it would alone. What the new one leaves in its
    own is seen by its requests only, so that neither finds the other's database there.

    Args:
        old: one app.
        new: the other.
        serve_new_by: given what shall serve the new app's requests, if it has left any state.
        scope: the lifespan scope.
        receive: the server's.
        send: the server's.
    """
    state = dict(scope.get("state", {}))
    known = set(state)
    parts = (
        _Part("old", old, scope),
        _Part("new", new, {**scope, "state": state} if "state" in scope else scope),
    )
    async with anyio.create_task_group() as tasks:
        message = await receive()
        for part in parts:
            tasks.start_soon(part.run)
            part.tell(message)
        for part in parts:
            await part.started.wait()
        failures = [part.failure for part in parts if part.failure is not None]
        if not failures:
            if own := {name: state[name] for name in state.keys() - known}:
                serve_new_by(WithState(new, own))
            await send({"type": "lifespan.startup.complete"})
            message = await receive()
        for part in parts:
            part.tell({"type": "lifespan.shutdown"} if failures else message)
        for part in parts:
            await part.ended.wait()
        if failures:
            await send({"type": "lifespan.startup.failed", "message": "\n".join(failures)})
        else:
            failures = [part.failure for part in parts if part.failure is not None]
            if failures:
                await send({"type": "lifespan.shutdown.failed", "message": "\n".join(failures)})
            else:
                await send({"type": "lifespan.shutdown.complete"})
        with anyio.move_on_after(LAST_WORDS):
            for part in parts:
                await part.left.wait()
        tasks.cancel_scope.cancel()


class _Part:
    """One of the apps, and how far it has got."""

    def __init__(self, name: str, app: ASGIApp, scope: Scope) -> None:
        self._name = name
        self._app = app
        self._scope = scope
        self._told: list[Message] = []
        self._tell = anyio.Event()
        self.started = anyio.Event()
        self.ended = anyio.Event()
        self.left = anyio.Event()
        self.failure: str | None = None
        """What it says about its failure, if it has failed."""

    def tell(self, message: Message) -> None:
        """Let the app receive a message."""
        self._told.append(message)
        self._tell.set()

    async def run(self) -> None:
        """Run the app; its end is noted, not raised."""
        try:
            await self._app(self._scope, self._receive, self._send)
        except Exception as error:
            if self.started.is_set() and self.failure is None:
                logger.exception("the lifespan of the %s app failed", self._name)
                self.failure = f"{self._name} app: {error!r:.200}"
            # Before it has answered, an exception is how an app says that it knows no lifespan.
            elif self.failure is None:
                logger.info("the %s app knows no lifespan: %r", self._name, error)
        finally:
            self.started.set()
            self.ended.set()
            self.left.set()

    async def _receive(self) -> Message:
        while not self._told:
            self._tell = anyio.Event()
            await self._tell.wait()
        return self._told.pop(0)

    async def _send(self, message: Message) -> None:
        kind = message["type"]
        if kind.endswith(".failed"):
            self.failure = f"{self._name} app: {message.get('message', '')}"
        if kind.startswith("lifespan.startup."):
            self.started.set()
        if kind.startswith("lifespan.shutdown.") or kind.endswith(".failed"):
            self.ended.set()
