"""Views that know how much time they have."""

from __future__ import annotations

import time

from django.http import HttpRequest, HttpResponse, JsonResponse

import resilience_mw


def index(request: HttpRequest) -> HttpResponse:
    """Wait for a backend, as most views do."""
    time.sleep(0.05)
    return HttpResponse("hello", content_type="text/plain")


def report(request: HttpRequest) -> HttpResponse:
    """Give the deadline on: use what is left as the timeout of your own calls."""
    return JsonResponse({"seconds_left": resilience_mw.remaining()})
