"""FastAPI on Uvicorn.

Run it, and look:

    uvicorn fastapi_app:app
    curl -i http://127.0.0.1:8000/ http://127.0.0.1:8000/readyz
"""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import Depends, FastAPI, Request
from fastapi.responses import PlainTextResponse

from resilience_mw.asgi import (
    BackpressureMiddleware,
    ConcurrencyLimitMiddleware,
    DeadlineMiddleware,
    HealthMiddleware,
)
from resilience_mw.core import Snapshot
from resilience_mw.starlette import remaining, snapshot

app = FastAPI()

# The last that is added is the outermost: probes, then deadlines, then the limits.
app.add_middleware(BackpressureMiddleware)
app.add_middleware(ConcurrencyLimitMiddleware, max_concurrent_requests=100)
app.add_middleware(DeadlineMiddleware, timeout=10)
app.add_middleware(HealthMiddleware)


@app.get("/")
async def index() -> PlainTextResponse:
    """Wait for a backend, as most handlers do."""
    await asyncio.sleep(0.05)
    return PlainTextResponse("hello")


@app.get("/report")
async def report(left: Annotated[float | None, Depends(remaining)]) -> dict[str, float | None]:
    """Give the deadline on: use `left` as the timeout of your own calls."""
    return {"seconds_left": left}


@app.get("/load")
async def load(request: Request) -> Snapshot:
    """Show what the middlewares see; keep it off the public network."""
    return snapshot(request.app)
