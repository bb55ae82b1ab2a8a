"""What our layer does for the worker classes that serve WSGI apps."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

from .base import Adapted
from .raw import BUSY, answer
from .reading import Limits, Stamped, read_with

T = TypeVar("T")


class WSGIAdapted(Adapted):
    """Deadlines for what is read, and a list of what is handled."""

    limits: Limits

    def init_process(self) -> None:
        """Let this process read under deadlines, then start as usual."""
        ceiling = self.longest_read()
        deadline = self.force.config.deadline
        receive = min(deadline.receive_timeout or math.inf, ceiling)
        self.limits = Limits(
            first=min(self.force.config.runner.headers_timeout, ceiling),
            keep_alive=self.force.keep_alive,
            head=min(self.force.head, ceiling),
            receive=0.0 if math.isinf(receive) else receive,
        )
        read_with(self.limits)
        super().init_process()

    def longest_read(self) -> float:
        """Return the seconds that reading may take whatever the options say."""
        return math.inf

    def protect_app(self) -> None:
        """Protect the app; outermost, tell it when requests arrived."""
        if self.wrapped is None:
            super().protect_app()
            self.wsgi = Stamped(self.wsgi)

    def while_handling(self, request: Any, handle: Callable[[], T]) -> T:
        """Handle a parsed request, which counts as in flight meanwhile."""
        with self.handling(request, request.method, request.path):
            return handle()

    def begin_stop(self) -> None:
        """Turn readiness, and let responses that have not begun say that they close."""
        super().begin_stop()
        self._close_after_these()

    def handle_exit(self, sig: int, frame: Any) -> None:
        """End after what is in flight, which says that it closes."""
        super().handle_exit(sig, frame)
        self._close_after_these()

    def _close_after_these(self) -> None:
        for request in list(self.serving):
            response = getattr(request.unreader, "response", None)
            if response is not None:
                response.force_close()

    def give_up(self) -> None:
        """Answer for the requests that are still running, as far as they have no answer yet."""
        if not self.forced():
            return
        for request in list(self.serving):
            unreader = request.unreader
            response = getattr(unreader, "response", None)
            if not getattr(response, "headers_sent", False):
                answer(unreader.sock, BUSY)
