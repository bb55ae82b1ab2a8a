"""Two stacks in a real server, whose new one fails when its client leaves; "/" has its counts."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse

from resilience_mw import RolloutRule, asgi, wsgi

RULES = [RolloutRule("r", prefix="/new", percent=100)]


def _counts(app: Any) -> bytes:
    new = app.snapshot().policies[0].rules[0].new
    return json.dumps([new.requests, new.errors]).encode()


async def asgi_old(scope: Any, receive: Any, send: Any) -> None:
    """Say the counts."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": _counts(asgi_app)})


async def asgi_new(scope: Any, receive: Any, send: Any) -> None:
    """Need the whole body; ``/new/500`` answers if it does not come, ``/new/silent`` never does."""
    if scope["path"] == "/new/silent":
        return
    try:
        await Request(scope, receive).body()
    except Exception:
        if scope["path"] != "/new/500":
            raise
        await PlainTextResponse("no", 500)(scope, receive, send)
        return
    await PlainTextResponse("new")(scope, receive, send)


def wsgi_old(environ: Any, start_response: Any) -> list[bytes]:
    """Say the counts."""
    body = _counts(wsgi_app)
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


def wsgi_new(environ: Any, start_response: Any) -> Any:
    """Do the same."""
    if environ["PATH_INFO"] == "/new/silent":
        return iter(())
    length = int(environ.get("CONTENT_LENGTH") or 0)
    if len(environ["wsgi.input"].read(length)) < length:
        if environ["PATH_INFO"] != "/new/500":
            raise ValueError("the body ends too early")
        start_response("500 No", [("Content-Length", "0")])
        return []
    start_response("200 OK", [("Content-Length", "0")])
    return []


asgi_app = asgi.RolloutMiddleware(asgi_old, new=asgi_new, rules=RULES)
wsgi_app = wsgi.RolloutMiddleware(wsgi_old, new=wsgi_new, rules=RULES)
