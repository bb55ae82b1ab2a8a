"""Uvicorn's configuration, from our options."""

from __future__ import annotations

import copy
import inspect
import logging
from typing import Any, Literal

import uvicorn
from uvicorn.config import LOGGING_CONFIG
from uvicorn.lifespan.on import LifespanOn

from ...asgi import Guard
from ...config import Config, resolve
from ...exceptions import ConfigError
from ...interface import interface_of
from ..drain import head_timeout
from ..once import Once
from ..reach import without_effect
from ..wrap import Wrapped, wrap
from .lifespan import Lifespan
from .protocol import protocol

logger = logging.getLogger("resilience_mw")


def logging_config() -> dict[str, Any]:
    """Return Uvicorn's own logging, with our logger beside its own."""
    config = copy.deepcopy(LOGGING_CONFIG)
    config["loggers"]["resilience_mw"] = {
        "handlers": ["default"],
        "level": "INFO",
        "propagate": False,
    }
    return config


class UvicornConfig(uvicorn.Config):
    """Uvicorn's configuration for one app.

    Args:
        app: an ASGI app or its import string.
        config: our options given by flags or in code.
        http: the parser.
        options: further arguments of ``uvicorn.Config``; they win over ours.

    Attributes:
        wrapped: the app behind its guard; there once the app has been loaded.

    Raises:
        ConfigError: an option is unknown or breaks a rule.
    """

    wrapped: Wrapped

    def __init__(
        self,
        app: Any,
        config: Config | None = None,
        *,
        http: Literal["auto", "httptools", "h11"] = "auto",
        **options: Any,
    ) -> None:
        if not hasattr(uvicorn.Config, "load_app"):
            raise ConfigError(f"uvicorn must be >= 0.50, got {uvicorn.__version__}")
        self.given = config
        known = resolve(config).config
        self.runner, self._head = known.runner, head_timeout(known)
        self.parser = http
        self._once = Once()
        options.setdefault("log_config", logging_config())
        super().__init__(app, http=protocol(self.runner, http, head=self._head), **options)
        self._time()

    def _time(self) -> None:
        self.timeout_keep_alive: Any = self.runner.keep_alive_timeout
        self.timeout_graceful_shutdown: Any = self.runner.shutdown_timeout

    def load_app(self) -> Any:
        """Import the app and wrap it, inside of what Uvicorn itself puts around it."""
        app = super().load_app()
        if self.factory or _takes_nothing(app):
            app, self.factory = app(), False
        if interface_of(app) == "wsgi":
            raise ConfigError(
                f"app must be ASGI for Uvicorn (use Gunicorn for WSGI), got {app!r:.80}"
            )
        self.wrapped = wrap(app, self.given, "asgi")
        self._tell_without_effect()
        runner, head = self.wrapped.config.runner, head_timeout(self.wrapped.config)
        if (runner, head) != (self.runner, self._head):
            # The framework's own settings say something of them, too.
            self.runner, self._head = runner, head
            self.http: Any = protocol(runner, self.parser, head=head)
            self.http_protocol_class = self.http
            self._time()
        return self.wrapped.app

    def _tell_without_effect(self) -> None:
        if self.wrapped.added:
            return
        told = without_effect(self.wrapped.app, self.given)
        if told and self._once.first():
            logger.warning("%s", told)

    def load(self) -> None:
        """Load the app, and what serves it."""
        super().load()
        if self.lifespan_class is LifespanOn:
            self.lifespan_class = Lifespan

    def outermost(self) -> Guard | None:
        """Return the guard that every request reaches first, if there is one.

        Only such a guard may answer in the protocol: another might never have been asked. Starlette
        makes its middlewares when it starts, so ask after that.
        """
        app = self.wrapped.app
        stack = getattr(app, "middleware_stack", None)
        if stack is not None and type(stack).__name__ == "ServerErrorMiddleware":
            app = stack.app  # it answers nothing but errors
        return app if isinstance(app, Guard) else None


def _takes_nothing(app: Any) -> bool:
    """Whether ``app`` is a function that makes the app."""
    return (
        inspect.isfunction(app)
        and not inspect.iscoroutinefunction(app)
        and not inspect.signature(app).parameters
    )
