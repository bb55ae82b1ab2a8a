"""The ASGI app with two paths more, for the measurements around the load itself."""

from __future__ import annotations

import asyncio

from fastapi.responses import PlainTextResponse

from benchmarks.apps.asgi import api
from benchmarks.apps.protection import protected
from benchmarks.overload.pause import HOLD_SECONDS, pause


@api.get("/hold")
async def hold() -> PlainTextResponse:
    """Keep a slot while the cost of a refusal is measured."""
    await asyncio.sleep(HOLD_SECONDS)
    return PlainTextResponse("held")


@api.get("/pause")
async def stop_everything() -> PlainTextResponse:
    """Stop the whole interpreter for a moment."""
    pause()
    return PlainTextResponse("back")


app = protected(api)
