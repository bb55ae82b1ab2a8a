"""The one line that protects an app."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Literal

from . import policies as build
from .config import Config, note, resolve
from .core.policy import Policy
from .exceptions import ConfigError
from .interface import as_asgi3, interface_of


def protect(
    app: Any,
    config: Config | None = None,
    *policies: Policy,
    interface: Literal["auto", "asgi", "wsgi"] = "auto",
) -> Any:
    """Return ``app`` behind probes, deadlines, a fixed limit and an adaptive limit, in this order.

    Args:
        app: any ASGI or WSGI app; the result speaks the same protocol.
        config: options given in code, which only flags of ``resilience-mw run`` beat. What it
            leaves out comes from the environment
            (``RESILIENCE_LIMIT_MAX_CONCURRENT_REQUESTS=100``), then from the TOML file that
            ``RESILIENCE_CONFIG_FILE`` names, then from the ``RESILIENCE`` setting of a Django or
            Flask app, then from the defaults.
        policies: more of your own, further in than ours.
        interface: the app's protocol, if its signature does not tell.

    Raises:
        ConfigError: an option is unknown or breaks a rule, or the protocol cannot be told.

    Example:
        >>> async def app(scope, receive, send): ...
        >>> app = protect(app, Config(limit=Limit(max_concurrent_requests=100)))
    """
    if interface not in ("auto", "asgi", "wsgi"):
        raise ConfigError(f'interface must be "auto", "asgi" or "wsgi", got {interface!r:.80}')
    if config is not None and not isinstance(config, Config):
        raise ConfigError(f"config must be a Config, got {config!r:.80}")
    options = resolve(config, settings=settings_of(app)).config
    threads = (interface_of(app) if interface == "auto" else interface) == "wsgi"
    row = [*build.for_all(options, threads=threads), *policies]
    if threads:
        from .wsgi import Guard as WSGIGuard

        guard: Any = WSGIGuard(app, *row)
    else:
        from .asgi import Guard as ASGIGuard

        guard = ASGIGuard(as_asgi3(app), *row)
    note(guard, app, *(config.parts() if config else ()))
    return guard


def settings_of(app: Any) -> Mapping[str, Any] | None:
    """Return what Django or Flask, if ``app`` is theirs, has been set to.

    Asked of modules that are loaded already: an app of a framework that is not cannot be.
    """
    handlers = sys.modules.get("django.core.handlers.base")
    if handlers is not None and isinstance(app, handlers.BaseHandler):
        from .django.conf import setting

        return setting()
    flask = sys.modules.get("flask")
    if flask is not None and isinstance(app, flask.Flask):
        from . import flask as extension

        return extension.settings_of(app.config)
    return None
