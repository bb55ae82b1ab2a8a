"""Views of both kinds that know how much time they have."""

from __future__ import annotations

import asyncio
import time

from django.http import HttpRequest, HttpResponse, JsonResponse

import resilience_mw


async def index(request: HttpRequest) -> HttpResponse:
    """Wait for a backend, as most views do."""
    await asyncio.sleep(0.05)
    return HttpResponse("hello", content_type="text/plain")


def thread(request: HttpRequest) -> HttpResponse:
    """Do the same in a thread: after a deadline it works on, and keeps its slot."""
    time.sleep(0.05)
    return HttpResponse("hello", content_type="text/plain")


async def report(request: HttpRequest) -> HttpResponse:
    """Give the deadline on: use what is left as the timeout of your own calls."""
    return JsonResponse({"seconds_left": resilience_mw.remaining()})
