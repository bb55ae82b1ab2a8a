"""The layer in front of the uvicorn-worker package: our server for Uvicorn, told by the master."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import signal
import sys
from collections.abc import Generator
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Any

import uvicorn
from gunicorn.arbiter import Arbiter
from uvicorn.config import STARTUP_FAILURE

from ...config import Config
from ..uvicorn import Server, UvicornConfig
from ..wrap import Wrapped
from .base import Adapted
from .shared import FORCED, LEAVING

PARSERS = ("auto", "httptools", "h11")


class UvicornMixin(Adapted):
    """Serves with our server, whatever the user's class has configured for Uvicorn's own."""

    if TYPE_CHECKING:
        config: uvicorn.Config

    server: WorkerServer | None = None

    def before_serving(self) -> None:
        """Nothing yet: the event loop, which watches for the stop, is still to be made."""

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        server = self.server = WorkerServer(self)
        loop.add_reader(self.shared.fileno(), self._stop_begins, loop)
        await server.serve(sockets=[sock.sock for sock in self.sockets])
        if server.exit_code == STARTUP_FAILURE:
            sys.exit(Arbiter.WORKER_BOOT_ERROR)
        if server.exit_code:
            self.shared.note(self.age, FORCED)

    def was_told(self) -> bool:
        """Whether it has ended because of a signal, or after enough requests."""
        return self.server is not None and self.server.should_exit

    def _stop_begins(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.remove_reader(self.shared.fileno())
        assert self.server is not None
        if os.getppid() != self.ppid:
            self.log.info("Parent changed, shutting down: %s", self)
            self.server.stop(delay=False)
        self.begin_stop()
        self.server.close_after_these()

    def _given(self) -> Config:
        """The options with the times that are left to a worker: the delay is the master's."""
        force = self.force
        runner = replace(
            force.config.runner,
            drain_delay=0.0,
            shutdown_timeout=force.drain,
            keep_alive_timeout=force.keep_alive,
        )
        return replace(force.config, runner=runner)

    def uvicorn_config(self) -> UvicornConfig:
        """Return our configuration with what the user's class has set."""
        names = list(inspect.signature(uvicorn.Config.__init__).parameters)[2:]
        known = vars(self.config)
        options: dict[str, Any] = {name: known[name] for name in names if name in known}
        http = options.pop("http")
        parser: Any = http if http in PARSERS else "auto"
        config = UvicornConfig(self.wsgi, self._given(), http=parser, **options)
        if http not in PARSERS:
            config.http = http  # a protocol of the user's own
        return config


class Undrained(Wrapped):
    """An app whose readiness is not turned by the end of one worker: a reload is no stop."""

    def drain(self) -> None:
        """Leave it to the layer of the worker, which hears of a stop from the master."""

    def turn(self) -> None:
        """Leave it as well."""


class WorkerServer(Server):
    """Our server without a delay of its own, and with the signals of a Gunicorn worker.

    Args:
        worker: the one it serves for.
    """

    def __init__(self, worker: UvicornMixin) -> None:
        super().__init__(worker.uvicorn_config())
        self._worker = worker
        self._progress = worker.progress

    def _load(self) -> bool:
        loaded = super()._load()
        if loaded:
            self.config.wrapped = Undrained(**vars(self.config.wrapped))
        return loaded

    def _stop_for(self, sig: int) -> None:
        """Stop with all the others, or, if the master says nothing of that, be replaced."""
        if sig == signal.SIGTERM and not self._worker.closing:
            self.retire()
        else:
            super()._stop_for(sig)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Listen to what the master sends, and to Ctrl-C, which the terminal sends to all."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
            signal.signal(number, self.handle_exit)
        yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Hear a signal. Gunicorn may repeat SIGTERM, and does not mean more by that."""
        self._worker.shared.note(self._worker.age, LEAVING)
        if sig == signal.SIGTERM:
            if not self._captured_signals:
                super().handle_exit(sig, frame)
            return
        self._worker.cfg.worker_int(self._worker)
        self._captured_signals = [signal.SIGTERM]  # a second one, which means "at once"
        super().handle_exit(sig, frame)
