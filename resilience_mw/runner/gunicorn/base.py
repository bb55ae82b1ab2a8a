"""What our layer does for every worker class."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, ClassVar

from ...config import Config
from ...exceptions import ConfigError
from ...told import heed
from ..crashes import EXIT_CODE
from ..drain import Progress, running
from ..wrap import Wrapped, wrap
from .families import Family
from .resolving import InForce
from .shared import FORCED, LEAVING, SERVING, Shared
from .stub import Worker

LINGER = 2.0
"""Seconds that a worker which ends without the master's delay (a reload, `max_requests`) still
answers on idle connections, and that a client has to close after its last response."""

FRESH_GRACE = 1.0
"""Seconds that a draining worker grants a new connection: its request may be on the way."""

HEAD_GRACE = 5.0
"""Seconds that a draining worker grants a head which has been received in part."""


class Serving:
    """A request that is being handled."""

    __slots__ = ("method", "path", "since")

    def __init__(self, method: str, path: str) -> None:
        self.method = method
        self.path = path
        self.since = time.monotonic()


class Adapted(Worker):
    """The layer in front of a worker class: protects the app, and watches for the stop.

    Of a class that we do not know it turns the readiness, and nothing else.

    Attributes:
        force, shared, family: set on the class that is made for one arbiter.
        closing: whether the stop has begun: each response closes its connection.
        serving: the requests in flight, by whatever tells them apart.
    """

    force: ClassVar[InForce]
    shared: ClassVar[Shared]
    family: ClassVar[Family]
    APP: ClassVar[str] = "wsgi"

    wrapped: Wrapped | None = None
    closing = False

    def init_process(self) -> None:
        """Set this worker's own limits, then start as usual."""
        self.shared.leave_to_master()
        heed(self.shared.told)
        self.serving: dict[Any, Serving] = {}
        self.progress = Progress(f"worker {self.pid}")
        # Below the master's, so that what belongs to the end of a worker is still run.
        self.cfg.settings["graceful_timeout"].value = self.force.drain
        try:
            super().init_process()
        except ConfigError as error:
            if self.booted:
                raise
            # A user's mistake, in one line: where in our code it was noticed tells nobody anything.
            self.log.error("%s", error)
            sys.exit(EXIT_CODE)

    def protect_app(self) -> None:
        """Put the app behind `protect()`, unless somebody did so before or it is not wanted."""
        if self.wrapped is None:
            app = getattr(self, self.APP)
            interface: Any = "asgi" if self.family.asgi else "wsgi"
            self.wrapped = wrap(app, self._given(), interface)
            setattr(self, self.APP, self.wrapped.app)

    def _given(self) -> Config:
        return self.force.config

    def run(self) -> None:
        """Serve, from the moment at which everything is in place."""
        with self.in_service() as begun:
            if begun:
                super().run()

    @contextlib.contextmanager
    def in_service(self) -> Iterator[bool]:
        """Tell the master that the worker serves meanwhile; False = the stop was faster."""
        self.protect_app()
        if self.wrapped is not None:
            self.wrapped.begin_serving()
        self.before_serving()
        if self.shared.stopping:
            yield False
            return
        self.shared.note(self.age, SERVING)
        yield True
        if self.was_told():
            self.shared.note(self.age, LEAVING)

    def was_told(self) -> bool:
        """Whether it has ended because of a signal, or after enough requests; else it crashed."""
        return not self.alive

    def before_serving(self) -> None:
        """Watch for the stop in the way that suits the worker class."""
        watcher = threading.Thread(target=self._watch, name="resilience_mw", daemon=True)
        watcher.start()

    def _watch(self) -> None:
        while not self.shared.draining:
            time.sleep(0.1)
        self.begin_stop()

    def begin_stop(self) -> None:
        """Turn readiness and refuse whoever waits; from now on responses close connections."""
        if not self.closing:
            self.closing = True
            self.progress.say("not ready", "not ready")
            if self.wrapped is not None:
                self.wrapped.drain()

    @contextlib.contextmanager
    def handling(self, key: Any, method: str, path: str) -> Iterator[None]:
        """Count a request as in flight."""
        self.serving[key] = Serving(method, path)
        try:
            yield
        finally:
            self.serving.pop(key, None)

    def handle_exit(self, sig: int, frame: Any) -> None:
        """End after what is in flight; at once if the app is not even loaded."""
        self.shared.note(self.age, LEAVING)
        if not self.booted:
            self.progress.say("start-up", "stopped while starting")
            sys.exit(0)
        super().handle_exit(sig, frame)

    def handle_quit(self, sig: int, frame: Any) -> None:
        """End at once, and say what that cuts off."""
        self.shared.note(self.age, LEAVING)
        self.forced("stopped at once")
        super().handle_quit(sig, frame)

    def end_process(self) -> None:
        """Do what ends the process, beyond returning."""

    def forced(self, why: str = "") -> bool:
        """Note and log that requests are cut off; returns whether there are any."""
        if not self.serving:
            return False
        self.shared.note(self.age, FORCED)
        now = time.monotonic()
        requests = [(one.method, one.path, now - one.since) for one in self.serving.values()]
        why = why or f"still running after {self.force.drain:g} s"
        self.progress.say("forced", f"{why}: {running(requests)}", level=logging.WARNING)
        return True
