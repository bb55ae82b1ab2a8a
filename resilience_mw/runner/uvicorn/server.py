"""Uvicorn's server with another end: not ready at once, accepting a little longer, then drained."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any

from uvicorn.config import STARTUP_FAILURE

from ...config import Runner
from ...core.health import HealthPolicy
from ...core.lifecycle import State as Stage
from ...exceptions import ConfigError
from ..drain import MARGIN, Progress, Timetable, running, timeouts
from ..wrap import is_wrapped
from .accept import Acceptor, address_of, logger, port_of
from .config import UvicornConfig
from .hearing import Hearing
from .protocol import FRESH_GRACE, Timed
from .state import State

LINGER = 2.0
"""Seconds for which a worker that is replaced still answers on idle connections."""

POLL = 0.02
"""Seconds between two looks at what is still running."""

SETTLE = 0.3
"""Seconds for what was cut to send its last words."""


class Server(Hearing):
    """Serves one app in this process until it is told to stop.

    Args:
        config: Uvicorn's configuration, from ours.
        parent: in a worker, a descriptor that ends when its parent does.
        announce: in a worker, called with the times in force once it serves.

    Attributes:
        exit_code: 0, or 1 if something had to be forced, or 3 if it did not start.
    """

    config: UvicornConfig

    def __init__(
        self,
        config: UvicornConfig,
        *,
        parent: int | None = None,
        announce: Callable[[Runner], None] | None = None,
    ) -> None:
        super().__init__(config)
        self.server_state: State = State()
        self.exit_code = 0
        self.servers = []
        self._parent = parent
        self._announce = announce
        self._acceptors: list[Acceptor] = []
        self._table: Timetable | None = None
        self._linger = 0.0
        self._stopping = asyncio.Event()
        name = "server" if parent is None else "worker"
        self._progress = Progress(f"{name} {os.getpid()}")

    # -- life ---------------------------------------------------------------------------------

    async def _serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Load, start, serve and stop."""
        assert sockets, "our runner binds the sockets itself"
        if not self._load() or self._takes_own_port(sockets):
            return
        self._loop = asyncio.get_running_loop()
        if self._parent is not None:
            self._loop.add_reader(self._parent, self._orphaned, self._parent)
        self.lifespan: Any = self.config.lifespan_class(self.config)
        if await self._start():
            try:
                self._listen(sockets)
            except OSError as error:
                await self._not_listening(sockets, error)
                return
            await self.main_loop()
            await self.shutdown()

    def _load(self) -> bool:
        try:
            if not self.config.loaded:
                self.config.load()
        except ConfigError as error:
            if self._parent is None:
                raise
            logger.error("%s", error)
            self.exit_code = STARTUP_FAILURE
        except Exception:
            logger.exception("the app could not be loaded")
            self.exit_code = STARTUP_FAILURE
        return not self.exit_code and not self.should_exit

    def _takes_own_port(self, sockets: Sequence[socket.socket]) -> bool:
        """Return whether the probes are to be answered on the port that the app is served on."""
        wrapped = self.config.wrapped
        port = wrapped.config.health.port
        if not port or port not in map(port_of, sockets) or not is_wrapped(wrapped.app):
            return False
        logger.error("health.port must differ from the server's port, got %d for both", port)
        self.exit_code = STARTUP_FAILURE
        return True

    async def _not_listening(self, sockets: Sequence[socket.socket], error: OSError) -> None:
        where = ", ".join(address_of(sock, self.config.ssl is not None) for sock in sockets)
        logger.error("cannot listen on %s: %s", where, error.strerror or error)
        self.exit_code = STARTUP_FAILURE
        await self.lifespan.shutdown()

    async def _start(self) -> bool:
        """Start the app; returns whether it is to be served."""
        starting = asyncio.ensure_future(self.lifespan.startup())
        told = asyncio.ensure_future(self._stopping.wait())
        await asyncio.wait({starting, told}, return_when=asyncio.FIRST_COMPLETED)
        told.cancel()
        if not starting.done():
            starting.cancel()
            task = self.lifespan.abandon()
            if task is not None and not (await asyncio.wait({task}, timeout=MARGIN / 2))[0]:
                self.exit_code = 1
            self._progress.say("stopped", "told to stop while starting, did not serve")
            return False
        starting.result()
        if self.lifespan.should_exit:
            self.exit_code = STARTUP_FAILURE
            return False
        if self.should_exit:
            await self._end_app()
            return False
        return True

    def _listen(self, sockets: Sequence[socket.socket]) -> None:
        config, state = self.config, self.server_state
        for policy in (p for guard in config.wrapped.guards() for p in guard.policies):
            if isinstance(policy, HealthPolicy):
                policy.lifecycle.advance(Stage.READY)  # without a lifespan nobody else would
        state.guard = config.outermost()
        make: Callable[..., asyncio.Protocol] = config.http_protocol_class

        def connection() -> asyncio.Protocol:
            return make(config=config, server_state=state, app_state=self.lifespan.state)

        tls = config.ssl
        options: dict[str, Any] = {"tls": tls, "backlog": config.backlog}
        options["handshake"] = config.runner.headers_timeout
        self._acceptors = [Acceptor(sock, connection, **options) for sock in sockets]
        self.started = True
        where = ", ".join(address_of(sock, tls is not None) for sock in sockets)
        how = "protected by the runner" if config.wrapped.added else "as it is"
        parser, loop = make.__name__.lower(), type(self._loop).__module__.partition(".")[0]
        self._progress.say(
            "serving",
            f"serving on {where} with Uvicorn ({parser}, {loop}), the app {how}; "
            f"{timeouts(config.runner)}",
        )
        if self._announce is not None:
            self._announce(config.runner)

    async def on_tick(self, counter: int) -> bool:
        """Keep house; returns whether it is time to stop accepting."""
        if await super().on_tick(counter) and self._table is None:
            # Enough requests, by Uvicorn's own option.
            if self._parent is None:
                self.stop(delay=False)
            else:
                self.retire()
        return self._table is not None and time.monotonic() >= self._table.accept_until

    # -- stop ---------------------------------------------------------------------------------

    def stop(self, *, delay: bool) -> None:
        """Turn readiness, and begin to stop: after the ``drain_delay`` or without it."""
        if not self._begin(delay=delay):
            return
        self.config.wrapped.drain()
        self.close_after_these()
        wait = f"for {self.config.runner.drain_delay:g} s more" if delay else "no longer"
        self._progress.say("draining", f"not ready any more, accepting {wait}; {self._left()}")

    def retire(self) -> None:
        """Begin to end because another worker is there instead: nobody is to think us not ready."""
        if self._begin(delay=False):
            self._linger = min(LINGER, self.config.runner.shutdown_timeout)
            self.close_after_these()
            self._progress.say("replaced", f"replaced, accepting no longer; {self._left()}")

    def _begin(self, *, delay: bool) -> bool:
        """Set the timetable; returns whether there is anybody to be told."""
        if self._table is not None:
            return False
        self._table = Timetable.begin(self.config.runner, time.monotonic(), delay=delay)
        self.should_exit = True
        self._stopping.set()
        return self.started

    def close_after_these(self) -> None:
        """Let every response from now on be the last of its connection."""
        self.server_state.drain()
        for connection in self._connections():
            connection.drain()

    def force(self) -> None:
        """Wait for nothing any more."""
        self.stop(delay=False)
        now = time.monotonic()
        self._table = Timetable(now, now, now + MARGIN)
        self._progress.say("at once", "told again, stopping at once")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Refuse new connections, let what is in flight finish in time, and end the app."""
        for acceptor in self._acceptors:
            acceptor.close()
        for acceptor in self._acceptors:
            await acceptor.settled(FRESH_GRACE)
        lingers = time.monotonic() + self._linger
        await self._finished(lambda: min(lingers, self._end().force_at))
        for connection in list(self.server_state.connections):
            connection.shutdown()
        seconds = f"{self.config.runner.shutdown_timeout:g} s"
        self._progress.say(
            "closed", f"refusing new connections, waiting up to {seconds}; {self._left()}"
        )
        if not await self._finished(lambda: self._end().force_at):
            await self._cut()
        await self._end_app()
        self._progress.say("stopped", f"stopped, exit code {self.exit_code}")

    async def _cut(self) -> None:
        """End what is still running, and say what it was."""
        state = self.server_state
        cut = [c.in_progress for c in self._connections() if c.in_progress is not None]
        if cut or state.tasks:
            self.exit_code = 1
            tasks = f"{len(state.tasks)} tasks; requests: {running(cut)}"
            self._progress.say("forced", f"cutting {tasks}", level=logging.WARNING)
        for task in list(state.tasks):
            task.cancel(msg="the time to shut down is over")
        for connection in self._connections():
            if not connection.busy:
                connection.expire()
        until = time.monotonic() + SETTLE
        await self._finished(lambda: until)
        for connection in self._connections():
            connection.transport.abort()

    async def _end_app(self) -> None:
        """Run the app's own shutdown, for as long as there is time."""
        limit = max(MARGIN / 2, self._end().end_by - SETTLE - time.monotonic())
        try:
            await asyncio.wait_for(self.lifespan.shutdown(), limit)
        except TimeoutError:
            self.exit_code = 1
            told = f"the app's own shutdown did not end within {limit:.1f} s"
            self._progress.say("lifespan", told, level=logging.WARNING)

    def _end(self) -> Timetable:
        assert self._table is not None
        return self._table

    def _connections(self) -> list[Timed]:
        return [c for c in self.server_state.connections if isinstance(c, Timed)]

    async def _finished(self, until: Callable[[], float]) -> bool:
        """Wait until nothing runs any more, or that moment, which may be moved meanwhile."""
        state = self.server_state
        while state.connections or state.tasks:
            now = time.monotonic()
            if now >= until():
                return False
            for connection in self._connections():
                connection.farewell(now)
            await asyncio.sleep(POLL)
        return True

    def _left(self) -> str:
        connections = self._connections()
        others = len(self.server_state.connections) - len(connections)
        serving = sum(connection.busy for connection in connections)
        return f"in flight: {serving} (open connections: {len(connections)}, websockets: {others})"
