"""Telling an ASGI app from a WSGI app, by looking at it."""

from __future__ import annotations

import functools
import operator
from unittest.mock import MagicMock

import asgiref.compatibility
import asgiref.wsgi
import django
import pytest
from django.conf import settings
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.wsgi import WSGIHandler
from fastapi import FastAPI
from flask import Flask
from starlette.applications import Starlette
from starlette.middleware.gzip import GZipMiddleware
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.middleware.proxy_fix import ProxyFix

from resilience_mw import ConfigError, protect
from resilience_mw.asgi import Guard as ASGIGuard
from resilience_mw.interface import as_asgi3, interface_of
from resilience_mw.wsgi import Guard as WSGIGuard
from tests.asgi.harness import call, run


async def asgi3(scope, receive, send):
    """The usual form."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ok"})


def asgi2(scope):
    """The old form."""
    return functools.partial(asgi3, scope)


def wsgi(environ, start_response):
    """The usual form."""
    start_response("200 OK", [])
    return [b"ok"]


class Asgi3:
    """An object whose call is a coroutine."""

    async def __call__(self, scope, receive, send):
        await asgi3(scope, receive, send)

    async def method(self, scope, receive, send):
        await asgi3(scope, receive, send)


class Returning:
    """An object whose call returns a coroutine."""

    def __call__(self, scope, receive, send):
        return asgi3(scope, receive, send)


class Asgi2:
    """A class to be made for each connection."""

    def __init__(self, scope):
        self.scope = scope

    async def __call__(self, receive, send):
        await asgi3(self.scope, receive, send)


class Asgi2Object:
    """An object that is called twice."""

    def __call__(self, scope):
        return functools.partial(asgi3, scope)


class Wsgi:
    """An object."""

    def __call__(self, environ, start_response):
        return wsgi(environ, start_response)

    def method(self, environ, start_response):
        return wsgi(environ, start_response)


class WsgiClass:
    """A class whose instances are bodies."""

    def __init__(self, environ, start_response):
        start_response("200 OK", [])

    def __iter__(self):
        return iter([b"ok"])


def wrapped(app):
    """Return a decorated app that takes anything."""

    @functools.wraps(app)
    def wrapper(*args, **kwargs):
        return app(*args, **kwargs)

    return wrapper


ASGI = {
    "function": asgi3,
    "object": Asgi3(),
    "bound method": Asgi3().method,
    "function that returns a coroutine": lambda scope, receive, send: asgi3(scope, receive, send),
    "object that returns a coroutine": Returning(),
    "partial": functools.partial(asgi3),
    "partial with a value": functools.partial(lambda x, s, r, t: asgi3(s, r, t), 1),
    "any arguments": wrapped(asgi3),
    "starlette": Starlette(),
    "fastapi": FastAPI(),
    "middleware": GZipMiddleware(Starlette()),
    "wsgi as asgi": asgiref.wsgi.WsgiToAsgi(wsgi),
    "guard": ASGIGuard(asgi3),
}
ASGI2 = {
    "function": asgi2,
    "class": Asgi2,
    "object": Asgi2Object(),
    "any arguments": wrapped(asgi2),
}
WSGI = {
    "function": wsgi,
    "object": Wsgi(),
    "bound method": Wsgi().method,
    "class": WsgiClass,
    "partial": functools.partial(lambda x, environ, start_response: [], 1),
    "optional third": lambda environ, start_response, exc_info=None: [],
    "keyword only": lambda environ, start_response, *, debug=False: [],
    "any arguments": wrapped(wsgi),
    "flask": Flask("app"),
    "flask's own": Flask("app").wsgi_app,
    "middleware": ProxyFix(Flask("app").wsgi_app),
    "dispatcher": DispatcherMiddleware(wsgi),
    "guard": WSGIGuard(wsgi),
    "builtin of two": operator.add,
}
UNKNOWN = {
    "any arguments": lambda *args: None,
    "builtin of any": print,
    "builtin of one": len,
    "type": dict,
    "four arguments": lambda a, b, c, d: None,
    "none": lambda: None,
    "one of three needed": lambda scope, receive=None, send=None: None,
    "mock": MagicMock(),
}


@pytest.mark.parametrize("app", ASGI.values(), ids=ASGI)
def test_asgi_apps_are_known(app):
    """By their being coroutines, or by three arguments; they are left as they are."""
    assert interface_of(app) == "asgi"
    assert as_asgi3(app) is app


@pytest.mark.parametrize("app", ASGI2.values(), ids=ASGI2)
def test_old_asgi_apps_are_known_and_served(app):
    """One argument, and then two."""
    assert interface_of(app) == "asgi"
    assert run(call(as_asgi3(app))).text == b"ok"
    guard = protect(app)
    assert isinstance(guard, ASGIGuard)
    assert run(call(guard)).text == b"ok"
    guard.close()


@pytest.mark.parametrize("app", WSGI.values(), ids=WSGI)
def test_wsgi_apps_are_known(app):
    """By two arguments that have to be given."""
    assert interface_of(app) == "wsgi"


@pytest.mark.parametrize("app", UNKNOWN.values(), ids=UNKNOWN)
def test_what_does_not_tell_has_to_be_told(app):
    """Rather than guessed: the error names the option."""
    with pytest.raises(ConfigError, match='interface must be "asgi" or "wsgi" for an app whose'):
        protect(app)
    assert isinstance(protect(app, interface="wsgi"), WSGIGuard)
    guard = protect(app, interface="asgi")
    assert isinstance(guard, ASGIGuard)
    assert guard.app is app


@pytest.mark.parametrize("app", [None, 7, "app:app", b"", object(), [], Starlette])
def test_what_is_no_app_is_refused(app):
    """In one line, and not by showing a page of it."""
    with pytest.raises(ConfigError) as raised:
        protect(app)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 250


def test_djangos_handlers_are_known():
    """Both of them."""
    if not settings.configured:
        settings.configure(LOGGING_CONFIG=None)
    django.setup()
    assert interface_of(ASGIHandler()) == "asgi"
    assert interface_of(WSGIHandler()) == "wsgi"


@pytest.mark.parametrize("interface", ["", "ASGI", "http", None, 3])
def test_an_unknown_interface_is_refused(interface):
    """The three that there are, and the value."""
    with pytest.raises(ConfigError, match='interface must be "auto", "asgi" or "wsgi", got '):
        protect(wsgi, interface=interface)


@pytest.mark.parametrize("config", [{}, "limit", 7])
def test_a_config_that_is_none_is_refused(config):
    """Settings are not guessed from whatever is given."""
    with pytest.raises(ConfigError, match="config must be a Config, got "):
        protect(wsgi, config)
