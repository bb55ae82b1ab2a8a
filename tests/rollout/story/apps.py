"""The shop: an old stack, a new one, and what runs on each of its servers in front of both."""

from __future__ import annotations

import os
from typing import Any

from resilience_mw import RolloutRule
from resilience_mw.asgi import RolloutMiddleware
from resilience_mw.rollout.proxy.asgi import proxy
from resilience_mw.rollout.proxy.wsgi import proxy as wsgi_proxy
from resilience_mw.wsgi import RolloutMiddleware as WSGIRolloutMiddleware

RULES = [
    RolloutRule("favourites", path="/item_collect.htm", by="server"),
    RolloutRule("cart", path="/cart", by="user", cookie="sid"),
]
SERVER = os.environ.get("SERVER", "")
OPTIONS: dict[str, Any] = {
    "new": os.environ.get("NEW"),
    "rules": RULES,
    "server_name": SERVER or None,
    "store": os.environ.get("STORE"),
}


async def stack(scope: Any, receive: Any, send: Any) -> None:
    """Answer the name of this stack: a page."""
    if scope["type"] != "http":
        return
    body = os.environ["STACK"].encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def asgi_server() -> Any:
    """Return the app of one server, which says its name in each answer."""
    app = RolloutMiddleware(proxy(os.environ["OLD"]), **OPTIONS)

    async def named(scope: Any, receive: Any, send: Any) -> None:
        async def tell(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], (b"x-server", name)]}
            await send(message)

        await app(scope, receive, tell if scope["type"] == "http" else send)

    name = SERVER.encode()
    return named


def wsgi_server() -> Any:
    """Return the same app under WSGI."""
    app = WSGIRolloutMiddleware(wsgi_proxy(os.environ["OLD"]), **OPTIONS)

    def named(environ: Any, start_response: Any) -> Any:
        def tell(status: str, headers: Any, *exc_info: Any) -> Any:
            return start_response(status, [*headers, ("X-Server", SERVER)], *exc_info)

        return app(environ, tell)

    return named
