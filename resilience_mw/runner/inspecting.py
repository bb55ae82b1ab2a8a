"""Look at an app for what contradicts the options: routes on probe paths, middlewares outside."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from ..config import Config, Health
from ..inside import is_ours, nodes_of, to_be_made
from ..protect import settings_of as own_settings
from .given import given_in
from .wrap import django_settings, guards_of, is_wrapped

_DEEPEST = 30


def settings_of(app: Any) -> Mapping[str, Mapping[str, Any]]:
    """Return the options that the app's framework holds in its own settings: Django, Flask."""
    return own_settings(app) or django_settings(app) or {}


def code_of(app: Any) -> Config:
    """Return the options that the app's own code has given to its guards."""
    return given_in(nodes_of(app))


def shadowed(app: Any, health: Health) -> tuple[str, ...]:
    """Return the probe paths for which the app has a route of its own.

    Routes of Starlette, FastAPI, Flask and Django are looked at; one that takes any path is none.
    """
    paths = (health.live_path, health.ready_path, health.startup_path, health.forward_path)
    return tuple(
        path
        for path in paths
        if path is not None and any(_routes(node, path) for node in _chain(app))
    )


def outside(app: Any) -> tuple[str, ...]:
    """Return the names of middlewares outside of our guard that are `BaseHTTPMiddleware`."""
    module = sys.modules.get("starlette.middleware.base")
    if module is None or not is_wrapped(app):
        return ()  # the runner will put ours around everything
    found = []
    for node in _chain(app):
        if guards_of(node)[:1] == [node]:
            break
        for kind in (type(node), *(kind for kind, _ in to_be_made(node))):
            if issubclass(kind, module.BaseHTTPMiddleware):
                found.append(kind.__name__)
            elif is_ours(kind):
                return tuple(found)
    return tuple(found)


def _chain(app: Any) -> Iterator[Any]:
    """Yield an app and what it wraps, outermost first."""
    for _ in range(_DEEPEST):
        if app is None:
            return
        yield app
        own = getattr(app, "__dict__", {})
        bound = getattr(own.get("wsgi_app"), "app", None)
        app = own.get("app") or own.get("wsgi_app") or bound or getattr(app, "__self__", None)


def _routes(node: Any, path: str) -> bool:
    if hasattr(node, "url_map"):
        return any(str(rule.rule) == path for rule in node.url_map.iter_rules())
    if "django.core.handlers.base" in sys.modules and hasattr(node, "get_response"):
        return _django_routes(path)
    return any(
        pattern.match(path) is not None and not _takes_any(route)
        for route in getattr(node, "routes", None) or ()
        if isinstance(pattern := getattr(route, "path_regex", None), re.Pattern)
    )


def _takes_any(route: Any) -> bool:
    """Whether a route is a catch-all or a mount, which says nothing of this path."""
    return "{" in getattr(route, "path", "") or hasattr(route, "routes")


def _django_routes(path: str) -> bool:
    from django.urls import Resolver404, resolve

    try:
        match = resolve(path)
    except Resolver404:
        return False
    return not match.kwargs and not match.args
