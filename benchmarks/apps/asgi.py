"""A FastAPI app whose paths overload an event loop in six different ways."""

from __future__ import annotations

import asyncio
import time

from fastapi import FastAPI
from fastapi.responses import PlainTextResponse

from benchmarks.apps.protection import protected
from benchmarks.apps.work import cpu

api = FastAPI(openapi_url=None)

# A database that serves ten at a time; requests queue for it inside the app.
connections = asyncio.Semaphore(10)


@api.get("/hello")
async def hello() -> PlainTextResponse:
    """Next to no work: what a probe asks for."""
    return PlainTextResponse("hello")


@api.get("/compute")
async def compute() -> PlainTextResponse:
    """10 ms of CPU without an `await`: the loop turns once a request."""
    cpu(10)
    return PlainTextResponse("done")


@api.get("/awaits")
async def awaits() -> PlainTextResponse:
    """The same 10 ms in ten pieces: requests take turns, and all of them get slower."""
    for _ in range(10):
        cpu(1)
        await asyncio.sleep(0)
    return PlainTextResponse("done")


@api.get("/io")
async def io() -> PlainTextResponse:
    """2 ms, a backend that takes 50 ms, 2 ms."""
    cpu(2)
    await asyncio.sleep(0.05)
    cpu(2)
    return PlainTextResponse("done")


@api.get("/light")
async def light() -> PlainTextResponse:
    """A backend that takes 5 ms and little CPU: the cost of refusing counts most here."""
    await asyncio.sleep(0.005)
    cpu(0.3)
    return PlainTextResponse("done")


@api.get("/pool")
async def pool() -> PlainTextResponse:
    """100 ms on one of ten connections: the CPU idles while requests queue."""
    async with connections:
        await asyncio.sleep(0.1)
    return PlainTextResponse("done")


@api.get("/thread")
def thread() -> PlainTextResponse:
    """A sync endpoint: 100 ms of waiting and 1 ms of CPU on one of the pool's 40 threads."""
    time.sleep(0.1)
    cpu(1)
    return PlainTextResponse("done")


app = protected(api)
