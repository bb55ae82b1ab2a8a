"""Three middlewares put together by hand, where `protect` would bring more.

Run it, and look:

    uvicorn by_hand:app
    curl -i http://127.0.0.1:8000/ http://127.0.0.1:8000/healthz

Read it from the outside in: a probe is answered before anything else, a deadline counts from the
request's arrival, and the limit is next to the app. Put side by side like this, the three cost as
much as one.
"""

from __future__ import annotations

import asyncio

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from resilience_mw.asgi import ConcurrencyLimitMiddleware, DeadlineMiddleware, HealthMiddleware


async def index(request: Request) -> PlainTextResponse:
    """Wait for a backend, then answer."""
    await asyncio.sleep(0.05)
    return PlainTextResponse("hello")


async def slow(request: Request) -> PlainTextResponse:
    """Take longer than the deadline allows: the client gets a 504 after two seconds."""
    await asyncio.sleep(60)
    return PlainTextResponse("too late")


site = Starlette(routes=[Route("/", index), Route("/slow", slow)])

app = HealthMiddleware(
    DeadlineMiddleware(
        ConcurrencyLimitMiddleware(site, max_concurrent_requests=20, exempt=("/static/",)),
        timeout=2,
    ),
    live_path="/healthz",
)
