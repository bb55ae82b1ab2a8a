"""Gunicorn's configuration for the options: a module to load, or to import from.

    gunicorn -c python:resilience_mw.runner.gunicorn app:app

or, in a ``gunicorn.conf.py``, ``from resilience_mw.runner.gunicorn import *`` or, as its last
line, ``configure(globals())``.

It sets `keepalive`, `graceful_timeout` and `timeout` from the options. Whoever sets them as well,
in the file or on the command line, wins. Options come from the environment, and from variables of
the file: ``RESILIENCE = {"runner": {"drain_delay": 5}}``, ``RESILIENCE_RUNNER_DRAIN_DELAY = 5`` or
``RESILIENCE = Config(...)``.

The hooks here only bring the rest in: they put a layer in front of the worker class that the user
has chosen, and add to the user's own hooks. One of them is enough, so that a file may define the
others after the import.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from ...config import resolve
from . import compose as _compose
from . import installing as _installing
from . import resolving as _resolving

__all__ = [
    "configure",
    "graceful_timeout",
    "keepalive",
    "nworkers_changed",
    "on_starting",
    "post_worker_init",
    "timeout",
    "when_ready",
]

_offered = _resolving.settings(resolve().config)
keepalive = _offered["keepalive"]
graceful_timeout = _offered["graceful_timeout"]
timeout = _offered["timeout"]


def nworkers_changed(server: Any, new_value: int, old_value: int | None) -> None:
    """Bring everything in: the first hook that runs, also after a reload."""
    _installing.install(server, _offered)


def on_starting(server: Any) -> None:
    """Bring everything in, if the user has a hook in the place of `nworkers_changed`."""
    _installing.install(server, _offered)


def when_ready(server: Any) -> None:
    """Bring everything in, if the user has hooks in the place of the others."""
    _installing.install(server, _offered)


def post_worker_init(worker: Any) -> None:
    """Protect the app, after the fork and after what the user's own hook does to it."""
    _installing.protect_app(worker)


def configure(namespace: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Add everything to the configuration of a ``gunicorn.conf.py``: ``configure(globals())``.

    Hooks that are there already are kept and called first; settings that are there win.

    Args:
        namespace: the variables of the file, or the options of an application of your own that is
            built on `gunicorn.app.base.BaseApplication`.

    Returns:
        The same mapping.

    Raises:
        ConfigError: a variable is unknown, or its value breaks a rule.
    """
    _resolving.from_conf(namespace)
    _resolving.configured = namespace
    for name, value in _offered.items():
        namespace.setdefault(name, value)
    for hook in (nworkers_changed, on_starting, when_ready, post_worker_init):
        name = hook.__name__
        theirs = namespace.get(name)
        if theirs is None or callable(theirs):
            namespace[name] = _compose.compose(name, theirs, hook)
    return namespace
