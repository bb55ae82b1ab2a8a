"""The layer in front of Gunicorn's sync worker, which serves one request at a time."""

from __future__ import annotations

import signal
from functools import partial
from typing import Any

from ...types import Environ, StartResponse, WSGIApp
from .wsgi_base import WSGIAdapted


class SyncMixin(WSGIAdapted):
    """Keeps to deadlines while reading, and does not let clients hang while it ends."""

    _answering = False

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

    def handle(self, listener: Any, client: Any, addr: Any) -> None:
        """Handle one connection, which is one request."""
        if self.shared.draining:
            self.begin_stop()
        try:
            super().handle(listener, client, addr)  # type: ignore[misc]
        finally:
            self._answering = False
            signal.setitimer(signal.ITIMER_REAL, 0.0)

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
        if not self._answering:
            return
        # The loop that would close them comes round only after this request. They are not needed
        # any more for it: Gunicorn has looked at them before it called the app.
        for listener in self.sockets:
            listener.close()
        signal.signal(signal.SIGALRM, self._overrun)
        signal.setitimer(signal.ITIMER_REAL, max(0.01, self.force.drain))

    def _overrun(self, sig: int, frame: Any) -> None:
        self.give_up()
        raise SystemExit(0)
