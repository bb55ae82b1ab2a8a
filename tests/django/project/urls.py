"""Views that say what they see, and views that tests hold in place."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar

from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.urls import path

import resilience_mw
from resilience_mw import django as resilience

held: dict[str, threading.Event] = {}
"""Events by name; `hold` waits for them in a thread."""

seen: list[str] = []
"""What views and tests noted, in order."""

colour: ContextVar[str] = ContextVar("colour", default="none")


def sync_view(request: HttpRequest) -> HttpResponse:
    return JsonResponse({"remaining": resilience_mw.remaining(), "thread": threading.get_ident()})


async def async_view(request: HttpRequest) -> HttpResponse:
    return JsonResponse({"remaining": resilience_mw.remaining(), "thread": threading.get_ident()})


def hold(request: HttpRequest, name: str) -> HttpResponse:
    seen.append(f"begin {name}")
    held[name].wait(20)
    seen.append(f"end {name}")
    return HttpResponse(name)


async def stay(request: HttpRequest) -> HttpResponse:
    seen.append("begin stay")
    try:
        await asyncio.sleep(20)
    finally:
        seen.append("end stay")
    return HttpResponse("stayed")


def fail(request: HttpRequest) -> HttpResponse:
    raise RuntimeError("the view failed")


def stream(request: HttpRequest) -> StreamingHttpResponse:
    def chunks() -> Iterator[bytes]:
        for _ in range(2):
            state = resilience.snapshot()
            assert state is not None
            yield f"{state.inflight}\n".encode()

    return StreamingHttpResponse(chunks())


async def async_stream(request: HttpRequest) -> StreamingHttpResponse:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(2):
            state = resilience.snapshot()
            assert state is not None
            yield f"{state.inflight}\n".encode()

    return StreamingHttpResponse(chunks())


async def paint(request: HttpRequest) -> HttpResponse:
    colour.set("red")
    return HttpResponse("painted")


urlpatterns = [
    path("sync", sync_view),
    path("async", async_view),
    path("hold/<name>", hold),
    path("stay", stay),
    path("fail", fail),
    path("stream", stream),
    path("async-stream", async_stream),
    path("paint", paint),
]
