"""What stands around the middleware: other middlewares, the applications, Gunicorn."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from ..asgi import Guard as ASGIGuard
from ..wsgi import Guard as WSGIGuard
from .middleware import ResilienceMiddleware

INNER = ("app", "application", "wsgi_app", "wrapped")
"""Attributes under which middlewares keep the application they wrap."""


def position_of(kind: type[Any]) -> int | None:
    """Return where in ``MIDDLEWARE`` a class or a subclass of it stands; ``None`` = nowhere."""
    for position, path in enumerate(settings.MIDDLEWARE):
        with contextlib.suppress(ImportError):
            middleware = import_string(path)
            if isinstance(middleware, type) and issubclass(middleware, kind):
                return position
    return None


def installed_at() -> int | None:
    """Return where in ``MIDDLEWARE`` our middleware stands; ``None`` = nowhere."""
    return position_of(ResilienceMiddleware)


def guarded_applications() -> list[str]:
    """Return the dotted paths of the project's WSGI and ASGI applications behind a guard."""
    return [path for path in _applications() if _guarded(path)]


def _applications() -> Iterator[str]:
    wsgi = getattr(settings, "WSGI_APPLICATION", None)
    asgi = getattr(settings, "ASGI_APPLICATION", None)
    if asgi is None and wsgi:
        # `startproject` puts both side by side, but only WSGI has a setting of its own.
        module, _, name = wsgi.rpartition(".")
        asgi = f"{module.removesuffix('wsgi')}asgi.{name}" if module.endswith("wsgi") else None
    for path in (wsgi, asgi):
        if path and _exists(path.rpartition(".")[0]):
            yield path


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _guarded(path: str) -> bool:
    try:
        application = import_string(path)
    except Exception:  # whatever is wrong with it, the server will say
        return False
    for _ in range(20):  # no stack is deeper, and a cycle ends
        if application is None or isinstance(application, (ASGIGuard, WSGIGuard)):
            break
        found = (getattr(application, name, None) for name in INNER)
        application = next((inner for inner in found if callable(inner)), None)
    return isinstance(application, (ASGIGuard, WSGIGuard))


@dataclass(frozen=True)
class Gunicorn:
    """What ``GUNICORN_CMD_ARGS`` tells; ``None`` = nothing."""

    threads: int | None = None
    timeout: int | None = None
    """Seconds of silence after which a worker is killed; 0 = never."""


def gunicorn() -> Gunicorn:
    """Read the environment variable ``GUNICORN_CMD_ARGS``.

    Threads count only for the two workers that have some; what cannot be read is left out.
    """
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    parser.add_argument("-k", "--worker-class", default="gthread")
    parser.add_argument("--threads", type=int)
    parser.add_argument("-t", "--timeout", type=int)
    try:
        words = shlex.split(os.environ.get("GUNICORN_CMD_ARGS", ""))
        given, _ = parser.parse_known_args(words)
    except (ValueError, argparse.ArgumentError, SystemExit):
        return Gunicorn()
    threaded = given.worker_class in ("sync", "gthread")
    return Gunicorn(given.threads if threaded else None, given.timeout)
