"""Two stacks behind one door, which say who answered; the store is the variable STORE."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from resilience_mw import RolloutRule, asgi, wsgi
from resilience_mw.types import ASGIApp

RULES = [RolloutRule("favourites", path="/item_collect.htm", percent=0, by="request")]


def wsgi_stack(name: str) -> Callable[..., Any]:
    def app(environ: Any, start_response: Any) -> list[bytes]:
        body = f"{name} {os.getpid()}".encode()
        headers = [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))]
        start_response("200 OK", headers)
        return [body]

    return app


def asgi_stack(name: str) -> ASGIApp:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        body = f"{name} {os.getpid()}".encode()
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return app


def __getattr__(name: str) -> Any:
    # One of the two, when it is asked for: each follows the store from then on.
    if name == "wsgi_app":
        return wsgi.RolloutMiddleware(
            wsgi_stack("old"), new=wsgi_stack("new"), rules=RULES, store=os.environ["STORE"]
        )
    if name == "asgi_app":
        return asgi.RolloutMiddleware(
            asgi_stack("old"), new=asgi_stack("new"), rules=RULES, store=os.environ["STORE"]
        )
    raise AttributeError(name)
