"""Protect an app that is not protected yet, and find the guards of one that is."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from ..config import Config, resolve
from ..core.health import HealthPolicy
from ..core.policy import Policy
from ..inside import nodes_of, to_be_made
from ..protect import protect
from .given import given_in, over


class Guard(Protocol):
    """What the three kinds of guards have in common."""

    policies: tuple[Policy, ...]

    def drain(self) -> None:
        """Turn readiness to 503 and refuse whoever waits."""


@dataclass(frozen=True)
class Wrapped:
    """An app that is ready to be served.

    Attributes:
        app: what to serve.
        config: the options in force, with those of the framework's own settings.
        added: whether it was us who wrapped it.
    """

    app: Any
    config: Config
    added: bool

    def guards(self) -> list[Guard]:
        """Return its guards, outermost first. Starlette makes its own only when it starts."""
        return guards_of(self.app)

    def begin_serving(self) -> None:
        """Let roll-outs write to their stores, before the first request tells them so."""
        for guard in self.guards():
            begin = getattr(guard, "begin_serving", None)
            if begin is not None:
                begin()

    def drain(self) -> None:
        """Turn readiness of every guard, and refuse whoever waits."""
        for guard in self.guards():
            guard.drain()

    def turn(self) -> None:
        """Turn readiness and nothing else: in a signal handler, whatever it has interrupted."""
        for policy in (policy for guard in self.guards() for policy in guard.policies):
            if isinstance(policy, HealthPolicy):
                policy.drain()


def wrap(
    app: Any, config: Config | None = None, interface: Literal["auto", "asgi", "wsgi"] = "auto"
) -> Wrapped:
    """Put ``app`` behind `protect()` unless `runner.protect` is off or somebody did so before.

    Args:
        app: any ASGI or WSGI app.
        config: options given by flags or in code; what they leave out comes from the code that
            has protected the app already, then from the environment, then from the framework's own
            settings, then from the defaults.
        interface: the app's protocol, if its signature does not tell.

    Raises:
        ConfigError: an option is unknown or breaks a rule, or the protocol cannot be told.
    """
    settings = django_settings(app)
    options = resolve(over(config, given_in(nodes_of(app))), settings=settings).config
    if not options.runner.protect or is_wrapped(app):
        return Wrapped(app, options, False)
    flask = sys.modules.get("flask")
    if flask is not None and isinstance(app, flask.Flask):
        from ..flask import Resilience

        # The extension, so that the app's own configuration counts and it can be asked about it.
        Resilience().init_app(app, config=options)
        return Wrapped(app, options, True)
    return Wrapped(protect(app, options, interface=interface), options, True)


def is_wrapped(app: Any) -> bool:
    """Return whether a guard of ours stands anywhere in ``app``, or will when it starts.

    A roll-out is a guard that protects nobody: it does not count.
    """
    return any(_protects(node) or _will_be_guarded(node) for node in nodes_of(app))


def guards_of(app: Any) -> list[Guard]:
    """Return the guards that stand in ``app`` by now, outermost first."""
    return [node for node in nodes_of(app) if _is_guard(node)]


def _is_guard(node: Any) -> bool:
    return issubclass(type(node), _guard_types())


def _protects(node: Any) -> bool:
    return _is_guard(node) and getattr(type(node), "protects", True)


def _guard_types() -> tuple[type, ...]:
    """The guard classes that have been imported: another cannot have been used."""
    modules = ("resilience_mw.asgi.guard", "resilience_mw.wsgi.guard", "resilience_mw.django.guard")
    return tuple(sys.modules[name].Guard for name in modules if name in sys.modules)


def _will_be_guarded(node: Any) -> bool:
    """Whether an app of Starlette, which makes its middlewares late, has been given one of ours."""
    return any(
        issubclass(kind, _guard_types()) and getattr(kind, "protects", True)
        for kind, _ in to_be_made(node)
    )


def django_settings(app: Any) -> Mapping[str, Any] | None:
    """Return what Django has been set to, if its app stands anywhere in ``app``."""
    base = sys.modules.get("django.core.handlers.base")
    if base is None or not any(issubclass(type(node), base.BaseHandler) for node in nodes_of(app)):
        return None
    from ..django.conf import setting

    return setting()
