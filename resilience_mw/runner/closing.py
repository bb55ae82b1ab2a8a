"""Let ASGI servers that have no such state of their own close connections during a drain."""

from __future__ import annotations

from ..types import ASGIApp, Message, Receive, Scope, Send


class Closing:
    """An ASGI app whose responses say ``Connection: close`` once the drain has begun.

    To be put outermost, on servers that then close the connection: Hypercorn and Granian do, and
    Uvicorn. HTTP/2 has no such header and is left alone.

    Args:
        app: the app to wrap.

    Attributes:
        draining: whether it has begun; set it to True at SIGTERM.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.draining = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] != "http" or not scope.get("http_version", "1.1").startswith("1"):
            await self.app(scope, receive, send)
            return

        async def closing(message: Message) -> None:
            if self.draining and message["type"] == "http.response.start":
                others = [pair for pair in message.get("headers", ()) if pair[0] != b"connection"]
                message = {**message, "headers": [*others, (b"connection", b"close")]}
            await send(message)

        await self.app(scope, receive, closing)
