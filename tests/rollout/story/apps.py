"""The shop: an old stack, a new one, and what runs on each of its servers in front of both."""

from __future__ import annotations

import asyncio
import itertools
import os
from pathlib import Path
from typing import Any

from resilience_mw import RolloutGuard, RolloutRule
from resilience_mw.asgi import DeadlineMiddleware, RolloutMiddleware
from resilience_mw.rollout.proxy.asgi import proxy
from resilience_mw.rollout.proxy.wsgi import proxy as wsgi_proxy
from resilience_mw.wsgi import DeadlineMiddleware as WSGIDeadlineMiddleware
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
    "guard": RolloutGuard(window=float(os.environ.get("WINDOW", "30"))),
}
DEADLINE = 2.0
TROUBLE = Path(os.environ.get("TROUBLE", os.devnull))
"""What is in this file ails the stack: nothing, ``fails``, ``slow`` or ``hangs``."""
numbers = itertools.count()


def what_ails() -> str:
    """Return the trouble of this moment."""
    return TROUBLE.read_text()


async def stack(scope: Any, receive: Any, send: Any) -> None:
    """Answer the name of this stack: a page that takes 20 ms to be made."""
    if scope["type"] != "http":
        return
    trouble = what_ails()
    await asyncio.sleep({"slow": 0.04, "hangs": 8.0}.get(trouble, 0.02))
    status = 500 if trouble == "fails" and next(numbers) % 4 == 0 else 200
    body = os.environ["STACK"].encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def asgi_server() -> Any:
    """Return the app of one server, which says its name in each answer."""
    app = DeadlineMiddleware(
        RolloutMiddleware(proxy(os.environ["OLD"]), **OPTIONS), timeout=DEADLINE
    )

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
    app = WSGIDeadlineMiddleware(
        WSGIRolloutMiddleware(wsgi_proxy(os.environ["OLD"]), **OPTIONS), timeout=DEADLINE
    )

    def named(environ: Any, start_response: Any) -> Any:
        def tell(status: str, headers: Any, *exc_info: Any) -> Any:
            return start_response(status, [*headers, ("X-Server", SERVER)], *exc_info)

        return app(environ, tell)

    return named
