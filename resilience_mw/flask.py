"""Protect Flask apps.

    app = Flask(__name__)
    Resilience(app)

or, with an application factory, ``resilience = Resilience()`` and ``resilience.init_app(app)``.

Options come from ``app.config["RESILIENCE"]``, a mapping of sections, and from keys such as
``RESILIENCE_LIMIT_MAX_CONCURRENT_REQUESTS``, which win over it. The environment wins over both,
and `Config` arguments over everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Flask, current_app

from . import policies
from .config import ENV_PREFIX, Config, Option, note, options_of, resolve
from .config.wording import hint, likely
from .core.snapshot import Snapshot
from .exceptions import ConfigError
from .wsgi import Guard

EXTENSION = "resilience_mw"
SETTING = "RESILIENCE"


class Resilience:
    """Puts Flask apps behind probes, deadlines, a fixed limit and an adaptive limit.

    One instance may serve several apps: it keeps none of them, and each has a guard of its own in
    ``app.extensions["resilience_mw"]``.

    Args:
        app: the app to protect at once; ``None`` = `init_app` will be called.
        config: options given in code, for each app that brings none of its own.

    Raises:
        ConfigError: an option is unknown or its value breaks a rule.
        RuntimeError: the app is protected already.

    Example:
        >>> app = Flask("example")
        >>> resilience = Resilience(app)
        >>> resilience.snapshot(app).inflight
        0
    """

    def __init__(self, app: Flask | None = None, *, config: Config | None = None) -> None:
        self.config = config
        if app is not None:
            self.init_app(app)

    def init_app(self, app: Flask, *, config: Config | None = None) -> None:
        """Wrap ``app.wsgi_app``, once an app.

        Args:
            app: the app to protect.
            config: options given in code, instead of those of the constructor.

        Raises:
            ConfigError: an option is unknown or its value breaks a rule.
            RuntimeError: the app is protected already.
        """
        if EXTENSION in app.extensions:
            raise RuntimeError(f"Resilience was initialized twice for the app {app.name!r}")
        options = resolve(config or self.config, settings=settings_of(app.config)).config
        guard = Guard(app.wsgi_app, *policies.for_all(options, threads=True))
        given = config or self.config
        note(guard, app.wsgi_app, *(given.parts() if given else ()))
        app.wsgi_app = guard  # type: ignore[method-assign]
        app.extensions[EXTENSION] = guard

    def snapshot(self, app: Flask | None = None) -> Snapshot:
        """Return the state of the guard of ``app``; of the current app if none is given.

        Raises:
            RuntimeError: the app is not protected, or there is no current app.
        """
        return _guard(app or current_app).snapshot()

    def drain(self, app: Flask | None = None) -> None:
        """Turn readiness to 503 and refuse whoever waits; requests are still served.

        Raises:
            RuntimeError: the app is not protected, or there is no current app.
        """
        _guard(app or current_app).drain()


def _guard(app: Flask) -> Guard:
    guard = app.extensions.get(EXTENSION)
    if not isinstance(guard, Guard):
        raise RuntimeError(f"Resilience was not initialized for the app {app.name!r}")
    return guard


def settings_of(config: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Put the mapping and the single keys of an app's configuration together."""
    settings: Mapping[str, Any] | None = config.get(SETTING)
    single = _single(config)
    if not single:
        return settings
    resolve(settings=settings)  # what is wrong with the mapping is said in its own name
    merged = {section: dict(values) for section, values in (settings or {}).items()}
    for option, value in single:
        merged.setdefault(option.section, {})[option.name] = value
    return merged


def _single(config: Mapping[str, Any]) -> list[tuple[Option, Any]]:
    """Read the keys that begin with our prefix; one that we do not know is an error."""
    known = {
        option.env: option
        for section in Config.sections().values()
        for option in options_of(section).values()
    }
    found = []
    for key in sorted(key for key in config if key.startswith(ENV_PREFIX)):
        option, value = known.get(key), config[key]
        if option is None:
            raise ConfigError(f"unknown configuration key {key}{hint(likely(key, known))}")
        try:
            # A file or variable read by Flask may have left a number as text.
            value = option.check(option.rule.parse(value) if isinstance(value, str) else value)
        except ConfigError as error:
            raise ConfigError(f"{key}: {error}", options=error.options) from None
        found.append((option, value))
    return found
