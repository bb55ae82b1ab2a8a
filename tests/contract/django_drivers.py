"""The same for Django: its own handlers around a view that follows the script."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, ClassVar

import django
from django.conf import settings
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.wsgi import WSGIHandler
from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.test import override_settings
from django.urls import re_path
from django.utils.decorators import sync_and_async_middleware

from resilience_mw.core import Policy
from resilience_mw.django import Guard

from .drivers import Asgi, Wsgi
from .script import WAIT, Boom, Call, Chunk, Fail, Pause, Start, Step

_building = threading.local()


def view(request: Any) -> HttpResponseBase:
    """Follow the script of the request in a thread."""
    call = Call.everyone[request.headers["x-call"]]
    call.entered.set()
    steps = iter(call.script)
    for step in steps:
        match step:
            case Start():
                return _response(step, list(steps), call, _stream)
            case Pause():
                call.pause().result(WAIT)
            case Fail():
                raise Boom
    raise AssertionError("a view must respond")


async def async_view(request: Any) -> HttpResponseBase:
    """Follow the script of the request on the loop."""
    call = Call.everyone[request.headers["x-call"]]
    call.entered.set()
    steps = iter(call.script)
    for step in steps:
        match step:
            case Start():
                return _response(step, list(steps), call, _async_stream)
            case Pause():
                await asyncio.wrap_future(call.pause())
            case Fail():
                raise Boom
    raise AssertionError("a view must respond")


def _response(start: Start, rest: list[Step], call: Call, stream: Any) -> HttpResponseBase:
    response: Any
    if all(isinstance(step, Chunk) for step in rest):
        body = b"".join(step.data for step in rest if isinstance(step, Chunk))
        response = HttpResponse(body, status=start.status)
    else:
        response = StreamingHttpResponse(stream(rest, call), status=start.status)
    del response["Content-Type"]
    for name, value in start.headers:
        response[name] = value
    answer: HttpResponseBase = response
    return answer


def _stream(rest: Sequence[Step], call: Call) -> Iterator[bytes]:
    for step in rest:
        match step:
            case Chunk(data):
                yield data
            case Pause():
                call.pause().result(WAIT)
            case Fail():
                raise Boom


async def _async_stream(rest: Sequence[Step], call: Call) -> AsyncIterator[bytes]:
    for step in rest:
        match step:
            case Chunk(data):
                yield data
            case Pause():
                await asyncio.wrap_future(call.pause())
            case Fail():
                raise Boom


@sync_and_async_middleware
def guarded(get_response: Any) -> Guard:
    """The one middleware: a guard with the policies of the driver that is being built."""
    _building.guard = Guard(get_response, *_building.policies)
    guard: Guard = _building.guard
    return guard


class Handler(ASGIHandler):
    """Keeps the request bodies, which the original leaves open if a response fails half-way."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies: list[Any] = []

    async def read_body(self, receive: Any) -> Any:
        """Note the file that the body is in."""
        self.bodies.append(await super().read_body(receive))
        return self.bodies[-1]


class _Django:
    """Builds a Django project of one view and one middleware, in force until it is closed."""

    handler: ClassVar[type[Any]]
    view: ClassVar[Any]
    app: Any
    guard: Any
    _settings: override_settings

    def build(self, *policies: Policy) -> None:
        """Guard the view with ``policies``."""
        if not settings.configured:
            settings.configure(LOGGING_CONFIG=None)
        self._settings = override_settings(
            ALLOWED_HOSTS=["*"],
            ROOT_URLCONF=type("urls", (), {"urlpatterns": [re_path("", type(self).view)]}),
            MIDDLEWARE=[f"{__name__}.guarded"],
        )
        self._settings.enable()
        django.setup()
        _building.policies = policies
        self.app = self.handler()
        self.guard = _building.guard

    def close(self) -> None:
        """End what still runs, and take the settings back."""
        super().close()  # type: ignore[misc]
        self._settings.disable()


class DjangoSync(_Django, Wsgi):
    """`resilience_mw.django` in a synchronous chain under WSGI."""

    name = "django-sync"
    handler = WSGIHandler
    view = staticmethod(view)


class DjangoAsync(_Django, Asgi):
    """`resilience_mw.django` in an asynchronous chain under ASGI."""

    name = "django-async"
    handler = Handler
    view = staticmethod(async_view)

    def close(self) -> None:
        """Close the request bodies, too."""
        super().close()
        for body in self.app.bodies:
            body.close()
