"""Tell an ASGI app from a WSGI app."""

from __future__ import annotations

import inspect
from typing import Any, Literal

from asgiref.compatibility import double_to_single_callable, is_double_callable

from .exceptions import ConfigError

Interface = Literal["asgi", "wsgi"]


def interface_of(app: Any) -> Interface:
    """Return which protocol ``app`` speaks.

    A coroutine function, or an object whose call is one, is ASGI; else the number of positional
    arguments decides: two are WSGI, three (or one, then three: the old ASGI 2) are ASGI.

    Raises:
        ConfigError: it is no callable, or its signature does not tell.
    """
    if not callable(app):
        raise ConfigError(f"app must be an ASGI or WSGI callable, got {app!r:.80}")
    if _is_asgi3(app):
        return "asgi"
    wanted = _positional(app)
    if wanted == 2:
        return "wsgi"
    if wanted == 3 or (wanted == 1 and _is_asgi2(app)):
        return "asgi"
    raise ConfigError(
        f'interface must be "asgi" or "wsgi" for an app whose signature does not tell, '
        f"got {app!r:.80}"
    )


def as_asgi3(app: Any) -> Any:
    """Return an ASGI app in the three-argument form, whichever of the two it has."""
    if _is_asgi3(app) or _positional(app) != 1:
        return app
    return double_to_single_callable(app)  # type: ignore[no-untyped-call]


def _is_asgi2(app: Any) -> bool:
    return bool(is_double_callable(app))  # type: ignore[no-untyped-call]


def _is_asgi3(app: Any) -> bool:
    call = app if inspect.isroutine(app) or inspect.isclass(app) else app.__call__
    return inspect.iscoroutinefunction(app) or inspect.iscoroutinefunction(call)


def _positional(app: Any) -> int | None:
    try:
        parameters = inspect.signature(app).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return None
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in kinds and p.default is p.empty for p in parameters)
