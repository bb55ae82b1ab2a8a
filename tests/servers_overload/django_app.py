"""The same page in Django, protected in MIDDLEWARE; synchronous and asynchronous."""

from __future__ import annotations

import asyncio
import time

from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse
from django.urls import path

from resilience_mw.django import snapshot
from tests.servers_overload.apps import LIMIT, SECONDS

UNCOUNTED = ["/inflight"]

settings.configure(
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    MIDDLEWARE=["resilience_mw.django.ResilienceMiddleware"],
    RESILIENCE={
        "limit": {"max_concurrent_requests": LIMIT, "exempt": UNCOUNTED},
        "backpressure": {"exempt": UNCOUNTED},
    },
)


def page(request: HttpRequest) -> HttpResponse:
    """Wait for a backend in a thread, then answer."""
    time.sleep(SECONDS)
    return HttpResponse("done")


async def async_page(request: HttpRequest) -> HttpResponse:
    """Wait for a backend on the loop, then answer."""
    await asyncio.sleep(SECONDS)
    return HttpResponse("done")


def inflight(request: HttpRequest) -> HttpResponse:
    """Tell how many requests are in flight, uncounted."""
    state = snapshot()
    return HttpResponse(str(state.inflight) if state else "no middleware")


urlpatterns = [path("", page), path("async", async_page), path("inflight", inflight)]

wsgi = get_wsgi_application()
asgi = get_asgi_application()
