"""The layer in front of Gunicorn's own ASGI worker."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, Any, ClassVar

import gunicorn.workers.gasgi

from ..drain import MARGIN
from .asgi_protocol import TimedProtocol
from .base import LINGER, Adapted

PERIOD = 0.05
"""Seconds between two looks at what is still open while draining."""

SPARE = 0.3
"""Seconds of the margin that are left to the end of the process itself."""


class LoopMixin(Adapted):
    """Ends its connections one by one instead of waiting for all of them."""

    APP: ClassVar[str] = "asgi"

    if TYPE_CHECKING:
        loop: Any
        servers: list[Any]
        lifespan: Any
        nr_conns: int
        _quick_shutdown: bool

    _main: asyncio.Task[Any] | None = None
    _backlog_restored = False

    def init_process(self) -> None:
        """Serve with our protocol, then start as usual."""
        self.protocols: set[TimedProtocol] = set()
        self.first_timeout = self.force.config.runner.headers_timeout
        gunicorn.workers.gasgi.ASGIProtocol = TimedProtocol
        super().init_process()

    def init_signals(self) -> None:
        """Let SIGTERM end a process that is only loading its app: no loop runs yet to hear it."""
        super().init_signals()  # type: ignore[misc]
        signal.signal(signal.SIGTERM, self.handle_exit)

    def before_serving(self) -> None:
        """Let the event loop watch for the stop, and hear of signals again."""
        self.loop.add_signal_handler(signal.SIGTERM, self.handle_exit_signal)
        self.loop.add_reader(self.shared.fileno(), self._stop_begins)

    def _stop_begins(self) -> None:
        self.loop.remove_reader(self.shared.fileno())
        self.begin_stop()

    async def _serve(self) -> None:
        self._main = asyncio.current_task()
        await super()._serve()  # type: ignore[misc]

    def notify(self) -> None:
        """Tell the master that we live; the first time, undo what asyncio did to the listeners."""
        super().notify()
        if not self._backlog_restored and self.servers:
            self._backlog_restored = True
            for sock in self.sockets:
                sock.listen(self.cfg.backlog)

    def handle_exit_signal(self) -> None:
        """End after what is in flight, beginning now."""
        super().handle_exit_signal()  # type: ignore[misc]
        for server in self.servers:
            server.close()
        if self.servers and self._main is not None:
            self._main.cancel()  # which only ends the sleep of Gunicorn's loop

    def handle_quit_signal(self) -> None:
        """End at once, and say what that cuts off."""
        self.forced("stopped at once")
        super().handle_quit_signal()  # type: ignore[misc]

    async def _shutdown(self) -> None:
        """Drain, cut off what is left at the limit, and let the app shut down in any case."""
        if self._main is not None and self._main.cancelling():
            self._main.uncancel()
        for server in self.servers:
            server.close()
        begun = self.loop.time()
        await asyncio.sleep(PERIOD)  # who was accepted in this very turn is not counted yet
        until = begun + self.force.drain
        idle_from = begun if self.closing else min(begun + LINGER, until)
        while self.nr_conns > 0 and not self._quick_shutdown:
            now = self.loop.time()
            if now >= until:
                break
            for protocol in tuple(self.protocols):
                protocol.drain(idle=now >= idle_from)
            self.notify()
            await asyncio.sleep(PERIOD)
        self.forced()
        for protocol in tuple(self.protocols):
            protocol.give_up()
        await asyncio.sleep(0)
        if self.lifespan is not None and not self._quick_shutdown:
            await self._shut_app_down()

    async def _shut_app_down(self) -> None:
        limit = MARGIN - SPARE
        try:
            await asyncio.wait_for(self.lifespan.shutdown(), limit)
        except TimeoutError:
            self.progress.say("lifespan", f"the app's shutdown took longer than {limit:g} s")
        except Exception as error:
            self.log.error("ASGI lifespan shutdown error: %s", error)
