"""The two apps of a roll-out's rule, watched."""

from __future__ import annotations

from time import monotonic
from typing import Any

from ..core.exchange import KEY
from ..core.rollout.meter import Meter
from ..signals.reach import is_closing
from ..types import ASGIApp, Message, Scope, Send


class Variant:
    """One of the two apps of a rule.

    Args:
        app: what serves the request.
        meter: counts how it goes.
        label: a response header that names the variant, or ``None``.
    """

    __slots__ = ("app", "back", "label", "meter")

    def __init__(self, app: ASGIApp, meter: Meter, label: tuple[bytes, bytes] | None) -> None:
        self.app = app
        self.meter = meter
        self.label = label
        self.back: ASGIApp | None = None
        """What serves safe requests instead: the same app, with a way back to the old one."""


def watch(variant: Variant, scope: Scope, send: Send) -> Response:
    """Return what watches the response to a request that ``variant`` is about to get."""
    response = Response()
    response.variant = variant
    response.scope = scope
    response.server_send = send
    response.status = 0
    response.began = now = monotonic()
    meter = variant.meter
    if meter.running is not None:
        meter.running.add(response)
        if now >= meter.look_at:
            meter.look(now)
    return response


class Response:
    """What is known of the response to one request.

    Made by `watch`.
    """

    __slots__ = ("began", "scope", "server_send", "status", "variant")

    variant: Variant
    scope: Scope
    server_send: Send
    began: float
    """When the app gets the request (monotonic seconds)."""
    status: int
    """Status of the response; 0 until it starts."""

    def send(self, message: Message) -> Any:
        """Pass a message on, noting the start."""
        if self.status or message["type"] != "http.response.start":
            return self.server_send(message)
        self.status = status = message["status"]
        variant = self.variant
        exchange = self.scope.get(KEY)
        now = monotonic()
        meter = variant.meter
        if meter.running is not None:
            meter.running.discard(self)
        if status >= 500 and is_closing(self.server_send):
            # Frameworks answer so when the client stops sending its request.
            meter.left(self.began, now)
        else:
            meter.answered(
                status,
                self.began,
                now,
                exchange is not None and exchange.deadline is not None and now > exchange.deadline,
                status == 503 and _busy(message),
            )
        if variant.label is not None:
            message = labelled(message, variant.label)
        return self.server_send(message)

    def end(self, error: BaseException | None) -> None:
        """Note how the app ended, if it raised or never answered."""
        now = monotonic()
        meter = self.variant.meter
        failed = isinstance(error, Exception)
        if self.status:
            # An OSError is how a server says that the client has left. A 500 has been counted:
            # Starlette sends it, and then raises what it was for.
            broke = failed and self.status < 500 and not isinstance(error, OSError)
            if broke and not is_closing(self.server_send):
                meter.broke(now)
            return
        if meter.running is not None:
            meter.running.discard(self)
        exchange = self.scope.get(KEY)
        late = exchange is not None and exchange.deadline is not None and now > exchange.deadline
        if not late:
            closing = is_closing(self.server_send)
            # Whoever returns without an answer has seen the client leave, or forgotten to answer.
            failed = not closing if failed else error is None and closing is False
        if late or failed:
            meter.failed(self.began, now, late)
        else:
            meter.left(self.began, now)

    def shut(self) -> None:
        """Swallow what the app may still send: another one answers."""
        self.status = self.status or 500
        self.server_send = _swallow


async def _swallow(message: Message) -> None:
    """Send nothing."""


def _busy(message: Message) -> bool:
    return any(name.lower() == b"retry-after" for name, _ in message.get("headers", ()))


def labelled(message: Message, label: tuple[bytes, bytes]) -> Message:
    """Return the start of a response with the header instead of any of the same name."""
    headers = [(n, v) for n, v in message.get("headers", ()) if n.lower() != label[0]]
    return {**message, "headers": [*headers, label]}
