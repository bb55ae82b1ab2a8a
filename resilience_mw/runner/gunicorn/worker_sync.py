"""The layer in front of Gunicorn's sync worker, which serves one request at a time."""

from __future__ import annotations

import contextlib
import errno
import math
import signal
import socket
import time
from functools import partial
from typing import Any

from ...signals.tcp import accept_queue
from ...types import Environ, StartResponse, WSGIApp
from .shared import FORCED
from .wsgi_base import WSGIAdapted

PERIOD = 0.1
"""Seconds between two looks at what is still to be done while stopping."""


class SyncMixin(WSGIAdapted):
    """Keeps to deadlines while reading, and does not let clients hang while it ends."""

    _answering = False
    _until = math.inf
    """When this worker has to be gone (monotonic seconds)."""

    def longest_read(self) -> float:
        """Return less than what the master allows, which would kill the whole worker."""
        return 0.8 * float(self.cfg.timeout) if self.cfg.timeout else super().longest_read()

    def before_serving(self) -> None:
        """Nothing: between two requests nobody could see a difference."""

    def protect_app(self) -> None:
        """Protect the app; outermost, know when it is running."""
        if self.wrapped is None:
            super().protect_app()
            self.wsgi = self._noting(self.wsgi)

    def _noting(self, app: WSGIApp) -> WSGIApp:
        def noting(environ: Environ, start_response: StartResponse) -> Any:
            self._answering = True
            return app(environ, start_response)

        return noting

    def accept(self, listener: Any) -> None:
        """Take in who waits, and serve; where another worker has shut the socket, nobody does."""
        try:
            super().accept(listener)  # type: ignore[misc]
        except OSError as error:
            if error.errno == errno.EINVAL and self.shared.alone:
                raise BlockingIOError(errno.EAGAIN, "shut down") from None
            raise

    def handle(self, listener: Any, client: Any, addr: Any) -> None:
        """Handle one connection, which is one request."""
        if self.shared.draining:
            self.begin_stop()
        try:
            super().handle(listener, client, addr)  # type: ignore[misc]
        finally:
            self._answering = False

    def handle_request(self, listener: Any, req: Any, client: Any, addr: Any) -> None:
        """Handle its request."""
        handle = partial(
            super().handle_request,  # type: ignore[misc]
            listener,
            req,
            client,
            addr,
        )
        self.while_handling(req, handle)

    def handle_exit(self, sig: int, frame: Any) -> None:
        """End after the request that is being handled, if any."""
        super().handle_exit(sig, frame)
        if math.isinf(self._until):
            self._until = time.monotonic() + max(0.01, self.force.drain)
            signal.signal(signal.SIGALRM, self._tick)
            signal.setitimer(signal.ITIMER_REAL, 0.01, PERIOD)

    def _tick(self, sig: int, frame: Any) -> None:
        if time.monotonic() >= self._until:
            self.give_up()
            if self.shared.stopping and self._awaited():
                self.shared.note(self.age, FORCED)  # they are reset
            raise SystemExit(0)
        # The loop that would close them comes round only after this request, which does not need
        # them any more: Gunicorn has looked at them before it called the app.
        if self._answering and not (self.shared.stopping and self._awaited()):
            for listener in self.sockets:
                self._close(listener)

    def _awaited(self) -> bool:
        """Whether clients wait to be accepted, whom closing the last listener would reset."""
        return any(accept_queue(one.fileno()) for one in self.sockets if one.sock is not None)

    def run(self) -> None:
        """Serve; at a stop, also those who wait to be accepted, as nobody else will."""
        super().run()
        if self.shared.stopping:
            for listener in self.sockets:
                self._serve_waiting(listener)
        signal.setitimer(signal.ITIMER_REAL, 0.0)

    def _serve_waiting(self, listener: Any) -> None:
        while time.monotonic() < self._until and listener.sock is not None:
            try:
                self.accept(listener)
            except ConnectionAbortedError:
                continue
            except OSError:
                break  # nobody is left, or it is closed
        self._close(listener)

    def _close(self, listener: Any) -> None:
        """Close a socket at a moment at which nobody waits there; if it is ours, for all workers.

        Else those that are idle leave first, and a balancer that goes on sending keeps the queue of
        the few that are left from ever being empty.
        """
        if self.shared.alone and listener.sock is not None:
            with contextlib.suppress(OSError):
                listener.sock.shutdown(socket.SHUT_RDWR)
        listener.close()
