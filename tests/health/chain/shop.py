"""The shop's tier: its pages come through a pool of five connections to the back end."""

from __future__ import annotations

import os
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from resilience_mw import Config, Health, protect
from resilience_mw.health import UpstreamCheck

BACKEND = os.environ["BACKEND"]

pool: Any = httpx.AsyncClient(limits=httpx.Limits(max_connections=5), timeout=None)


async def page(request: Request) -> PlainTextResponse:
    """Hold one of the five connections for some seconds."""
    answer = await pool.get(f"{BACKEND}/hold/{request.path_params['seconds']}")
    return PlainTextResponse(answer.text)


async def naive(request: Request) -> PlainTextResponse:
    """Ask for the status as the shop did at first."""
    answer = await pool.get(f"{BACKEND}/status")
    return PlainTextResponse(answer.text, answer.status_code)


app = protect(
    Starlette(routes=[Route("/page/{seconds}", page), Route("/naive", naive)]),
    Config(
        health=Health(
            checks={"next-tier": UpstreamCheck(f"{BACKEND}/status", timeout=0.8, interval=0.5)},
            forward_path="/status",
        )
    ),
)
