"""ASGI apps that can be kept as busy as a test wants."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from resilience_mw import protect


async def block(request: Request) -> PlainTextResponse:
    """Hold the event loop: asleep, or computing."""
    seconds = float(request.query_params["seconds"])
    if "compute" in request.query_params:
        spin(seconds)
    else:
        time.sleep(seconds)  # noqa: ASYNC251 - that is the point
    return PlainTextResponse(str(os.getpid()))


def occupy(request: Request) -> PlainTextResponse:
    """Hold a thread of the pool."""
    time.sleep(float(request.query_params["seconds"]))
    return PlainTextResponse(str(os.getpid()))


async def work(request: Request) -> PlainTextResponse:
    """Compute for 10 ms, with a turn of the loop before."""
    await asyncio.sleep(0)
    spin(0.01)
    return PlainTextResponse("done")


def spin(seconds: float) -> None:
    """Compute without ever letting go of the interpreter by oneself."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


async def bare(scope: Any, receive: Any, send: Any) -> None:
    """Know no lifespan."""
    assert scope["type"] == "http"
    await PlainTextResponse(str(os.getpid()))(scope, receive, send)


routes = [Route("/block", block), Route("/occupy", occupy), Route("/", work)]
unprotected = Starlette(routes=routes)
asgi = protect(Starlette(routes=routes))
unaware = protect(bare, interface="asgi")
