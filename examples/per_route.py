"""Two routes with limits of their own, inside the limits of the whole app.

Run it, and look:

    uvicorn per_route:app
    curl -i http://127.0.0.1:8000/reports/2026 http://127.0.0.1:8000/search/socks

A report takes a second of somebody's database, so no more than two run at once; two more may wait
for two seconds. Searches are cheap but many. Everything else is held by the adaptive limit alone.
"""

from __future__ import annotations

import asyncio

from fastapi import FastAPI
from fastapi.responses import PlainTextResponse

from resilience_mw import Config, protect
from resilience_mw.core import Gate

api = FastAPI()


@api.get("/")
async def index() -> PlainTextResponse:
    """Belong to no limit but the app's."""
    return PlainTextResponse("hello")


@api.get("/reports/{year}")
async def report(year: int) -> PlainTextResponse:
    """Take long."""
    await asyncio.sleep(1)
    return PlainTextResponse(f"report of {year}")


@api.get("/search/{words}")
async def search(words: str) -> PlainTextResponse:
    """Take little."""
    await asyncio.sleep(0.02)
    return PlainTextResponse(f"found {words}")


app = protect(
    api,
    Config(),
    Gate(2, only=("/reports/",), max_queue=2, max_wait=2.0, name="reports"),
    Gate(20, only=("/search/",), name="search"),
)
