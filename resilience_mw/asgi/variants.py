"""The two apps of a roll-out's rule, watched."""

from __future__ import annotations

from time import monotonic
from typing import Any

from ..core.exchange import KEY
from ..core.rollout.meter import Meter
from ..types import ASGIApp, Message, Receive, Scope, Send


class Variant:
    """One of the two apps of a rule.

    Args:
        app: what serves the request.
        meter: counts how it goes.
        label: a response header that names the variant, or ``None``.
    """

    def __init__(self, app: ASGIApp, meter: Meter, label: tuple[bytes, bytes] | None) -> None:
        self.app = app
        self.meter = meter
        self.label = label

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request."""
        response = Response(self.meter, self.label, scope, send)
        try:
            await self.app(scope, receive, response.send)
        except BaseException as error:
            response.end(error)
            raise
        if not response.status:
            response.end(None)


class Response:
    """What is known of the response to one request."""

    __slots__ = ("_label", "_meter", "_scope", "_send", "began", "status")

    def __init__(
        self, meter: Meter, label: tuple[bytes, bytes] | None, scope: Scope, send: Send
    ) -> None:
        self._meter = meter
        self._label = label
        self._scope = scope
        self._send = send
        self.status = 0
        self.began = now = monotonic()
        meter.begin(now)

    def send(self, message: Message) -> Any:
        """Pass a message on, noting the start."""
        if self.status or message["type"] != "http.response.start":
            return self._send(message)
        self.status = status = message["status"]
        now = monotonic()
        busy = status == 503 and any(n.lower() == b"retry-after" for n, _ in message["headers"])
        self._meter.answered(status, self.began, now, busy=busy, late=self._late(now))
        return self._send(message if self._label is None else labelled(message, self._label))

    def end(self, error: BaseException | None) -> None:
        """Note how the app ended, if it raised or never answered."""
        now = monotonic()
        if self.status:
            # An OSError is how a server says that the client has left.
            if isinstance(error, Exception) and not isinstance(error, OSError):
                self._meter.broke(now)
        elif self._late(now):
            self._meter.failed(self.began, now, late=True)
        elif isinstance(error, Exception):
            self._meter.failed(self.began, now, late=False)
        else:
            self._meter.left(self.began, now)

    def _late(self, now: float) -> bool:
        exchange = self._scope.get(KEY)
        return exchange is not None and exchange.deadline is not None and now > exchange.deadline


def labelled(message: Message, label: tuple[bytes, bytes]) -> Message:
    """Return the start of a response with the header instead of any of the same name."""
    headers = [(n, v) for n, v in message.get("headers", ()) if n.lower() != label[0]]
    return {**message, "headers": [*headers, label]}
