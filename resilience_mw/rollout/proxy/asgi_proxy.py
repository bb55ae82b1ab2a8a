"""The reverse proxy as an ASGI app."""

from __future__ import annotations

from typing import Unpack

from ...asgi.exchange import exchange_of, send_reply
from ...context import remaining
from ...types import Receive, Scope, Send
from .asgi_call import Call
from .asgi_pool import Pools
from .errors import NO_WEBSOCKET, BadRequest
from .incoming import Incoming, check
from .reach import Reach
from .upstream import Options, upstream


class ASGIProxy:
    """A reverse proxy to one upstream; see `resilience_mw.rollout.proxy.asgi.proxy`."""

    def __init__(self, url: str, **options: Unpack[Options]) -> None:
        self.upstream = upstream(url, **options)
        self.reach = Reach(self.upstream.url)
        self.pools = Pools(self.upstream)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] == "http":
            await self._serve(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._refuse_websocket(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)

    async def aclose(self) -> None:
        """Close the connections that the running event loop has open."""
        await self.pools.aclose()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Incoming(
            method=scope["method"],
            version=scope.get("http_version", "1.1"),
            path=scope["path"].encode("utf-8", "surrogateescape"),
            raw_path=scope.get("raw_path"),
            root=scope.get("root_path", "").encode("utf-8", "surrogateescape"),
            query=scope.get("query_string", b""),
            fields=[(bytes(name), bytes(value)) for name, value in scope["headers"]],
            exchange=exchange_of(scope, send),
            scheme=scope.get("scheme", "http"),
        )
        try:
            target, head, framing = check(request, self.upstream, remaining())
        except BadRequest as error:
            if error.reply is NO_WEBSOCKET:
                self.reach.websocket()
            await send_reply(error.reply, scope, send)
            return
        call = Call(self, scope, receive, send)
        await call.run(request.method.encode("latin-1"), target, head, framing)

    async def _refuse_websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.reach.websocket()
        if (await receive())["type"] != "websocket.connect":
            return
        if "websocket.http.response" not in scope.get("extensions", {}):
            await send({"type": "websocket.close", "code": 1008, "reason": "not through a proxy"})
            return
        await send(
            {
                "type": "websocket.http.response.start",
                "status": NO_WEBSOCKET.status,
                "headers": list(NO_WEBSOCKET.raw_headers),
            }
        )
        await send({"type": "websocket.http.response.body", "body": NO_WEBSOCKET.body})

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            else:
                await self.aclose()
                await send({"type": "lifespan.shutdown.complete"})
                return
