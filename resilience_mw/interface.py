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
    required, most = _positional(app)
    if required == 2:
        return "wsgi"
    if required == 3 or _is_asgi2(app, required, most):
        return "asgi"
    hint = "; if it makes the app, call it, or use --factory" if required == 0 else ""
    raise ConfigError(
        f'interface must be "asgi" or "wsgi" for an app whose signature does not tell, '
        f"got {app!r:.80}{hint}"
    )


def as_asgi3(app: Any) -> Any:
    """Return an ASGI app in the three-argument form, whichever of the two it has."""
    if _is_asgi3(app) or not _is_asgi2(app, *_positional(app)):
        return app
    return double_to_single_callable(app)  # type: ignore[no-untyped-call]


def _is_asgi3(app: Any) -> bool:
    call = app if inspect.isroutine(app) or inspect.isclass(app) else app.__call__
    return inspect.iscoroutinefunction(app) or inspect.iscoroutinefunction(call)


def _is_asgi2(app: Any, required: int, most: int) -> bool:
    if required != 1 or most != 1 or inspect.isbuiltin(app):
        return False
    return bool(is_double_callable(app))  # type: ignore[no-untyped-call]


def _positional(app: Any) -> tuple[int, int]:
    """Return how many positional arguments ``app`` needs and takes; zeros if it does not tell."""
    try:
        parameters = inspect.signature(app).parameters.values()
    except (TypeError, ValueError):
        return 0, 0
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return 0, 0
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    taken = [parameter for parameter in parameters if parameter.kind in kinds]
    return sum(parameter.default is parameter.empty for parameter in taken), len(taken)
