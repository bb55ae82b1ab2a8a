"""Tell an ASGI app from a WSGI app."""

from __future__ import annotations

import inspect
from typing import Any, Literal

from asgiref.compatibility import is_double_callable

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
    call = app if inspect.isroutine(app) or inspect.isclass(app) else app.__call__
    if inspect.iscoroutinefunction(app) or inspect.iscoroutinefunction(call):
        return "asgi"
    if is_double_callable(app):
        return "asgi"
    wanted = _positional(app)
    if wanted == 2:
        return "wsgi"
    if wanted == 3:
        return "asgi"
    raise ConfigError(
        f'interface must be "asgi" or "wsgi" for an app whose signature does not tell, '
        f"got {app!r:.80}"
    )


def _positional(app: Any) -> int | None:
    try:
        parameters = inspect.signature(app).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return None
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in kinds and p.default is p.empty for p in parameters)
