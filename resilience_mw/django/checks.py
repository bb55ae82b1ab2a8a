"""System checks, for ``manage.py check``; those with a * need ``manage.py check --deploy``.

- ``resilience_mw.E001``: an option in ``RESILIENCE`` or in the environment breaks its rule.
  Give it a value that the message allows.
- ``resilience_mw.E002``: ``RESILIENCE`` has an option that does not exist.
  Use the name in the hint.
- ``resilience_mw.E003``: an option has a name that is not (or no longer) read: that of the Node
  system, or that of an environment variable as a setting of its own.
  Write it as in the hint.
- ``resilience_mw.W001`` *: the middleware is not the first in ``MIDDLEWARE``.
  Move it to the front: what stands before it runs for refused requests, too.
- ``resilience_mw.W002`` *: there is no limit on requests in flight.
  Set ``limit.max_concurrent_requests``, or leave ``backpressure.enabled`` on.
- ``resilience_mw.W003``: the application in ``wsgi.py`` or ``asgi.py`` is protected, and so is
  ``MIDDLEWARE``.
  Remove the middleware: it lets the requests of a protected application pass.
- ``resilience_mw.W004``: a probe's path is one of the URLconf's as well, or is redirected to HTTPS.
  Move the probe, or exempt it from the redirect.
- ``resilience_mw.W005`` *: the fixed limit is not below Gunicorn's threads, so it never acts.
  Lower ``limit.max_concurrent_requests``, or raise ``--threads``.
- ``resilience_mw.W006`` *: Gunicorn kills a worker before the deadline of a request has come.
  Lower ``deadline.timeout``, or raise ``--timeout``.

Silence one with ``SILENCED_SYSTEM_CHECKS = ["resilience_mw.W001"]``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.middleware.security import SecurityMiddleware
from django.urls import Resolver404, resolve

from .. import policies
from ..config import ENV_PREFIX, Config, Option, options_of
from ..exceptions import ConfigError
from . import conf
from .surroundings import guarded_applications, gunicorn, installed_at, position_of


def check_options(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    """Find what is wrong with the options: E001, E002, E003."""
    found: list[CheckMessage] = [_flat(name) for name in dir(settings) if _is_flat(name)]
    try:
        policies.for_health(conf.options().health)  # a health check that cannot be built, too
    except ConfigError as error:
        found.append(_error(error))
    return found


def check_placement(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    """Find what stands in the middleware's way: W003, W004."""
    position = installed_at()
    config = _valid_options()
    if position is None or config is None:
        return []
    found: list[CheckMessage] = [
        Warning(
            f"{application} is protected, and so is MIDDLEWARE.",
            hint=(
                "Remove ResilienceMiddleware from MIDDLEWARE: it lets every request pass that "
                "comes through a protected application."
            ),
            id="resilience_mw.W003",
        )
        for application in guarded_applications()
    ]
    health = config.health
    paths = (health.live_path, health.ready_path, health.startup_path, health.forward_path)
    for path in filter(None, paths):
        found += _check_probe(path, position)
    return found


def check_deployment(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    """Find what protects less than it seems to: W001, W002, W005, W006."""
    config = _valid_options()
    if config is None:
        return []
    return [*_check_middleware(config), *_check_gunicorn(config)]


def _check_middleware(config: Config) -> Iterator[CheckMessage]:
    position = installed_at()
    if position:
        yield Warning(
            f"ResilienceMiddleware is number {position + 1} in MIDDLEWARE.",
            hint="Move it to the front: what stands before it runs for refused requests, too.",
            id="resilience_mw.W001",
        )
    limited = config.limit.max_concurrent_requests or config.backpressure.enabled
    if position is not None and not limited:
        yield Warning(
            "RESILIENCE sets no limit on requests in flight.",
            hint="Set limit.max_concurrent_requests, or leave backpressure.enabled on.",
            id="resilience_mw.W002",
        )


def _check_gunicorn(config: Config) -> Iterator[CheckMessage]:
    server = gunicorn()
    limit, deadline = config.limit.max_concurrent_requests, config.deadline.timeout
    if server.threads is not None and limit >= server.threads:
        yield Warning(
            f"limit.max_concurrent_requests ({limit}) is not below Gunicorn's threads "
            f"({server.threads}), so that it never acts.",
            hint=(
                "A middleware sees only requests that have a thread: lower "
                "limit.max_concurrent_requests, or raise --threads."
            ),
            id="resilience_mw.W005",
        )
    if server.timeout and deadline is not None and deadline >= server.timeout:
        yield Warning(
            f"deadline.timeout ({deadline:g} s) is not below Gunicorn's timeout "
            f"({server.timeout} s), which kills the worker.",
            hint="Lower deadline.timeout, or raise --timeout.",
            id="resilience_mw.W006",
        )


def _check_probe(path: str, position: int) -> Iterator[CheckMessage]:
    if _in_urlconf(path):
        yield Warning(
            f"The URLconf has {path} as well, where the middleware answers probes.",
            hint="Remove it from the URLconf, or move the probe with the options of health.",
            id="resilience_mw.W004",
        )
    security = position_of(SecurityMiddleware)
    redirects = settings.SECURE_SSL_REDIRECT and security is not None and security < position
    exempt = (re.search(rule, path.lstrip("/")) for rule in settings.SECURE_REDIRECT_EXEMPT)
    if redirects and not any(exempt):
        yield Warning(
            f"SECURE_SSL_REDIRECT redirects the probe {path} to HTTPS.",
            hint=(
                "Put ResilienceMiddleware before SecurityMiddleware, or add "
                f'r"^{re.escape(path.lstrip("/"))}$" to SECURE_REDIRECT_EXEMPT.'
            ),
            id="resilience_mw.W004",
        )


def _in_urlconf(path: str) -> bool:
    try:
        resolve(path)
    except Resolver404:
        return False
    return True


def _valid_options() -> Config | None:
    try:
        return conf.options()
    except ConfigError:
        return None  # E001 to E003 tell


def _error(error: ConfigError) -> Error:
    known = {option.dotted for option in _options()}
    if not error.options or known.issuperset(error.options):
        hint = "See the table of options for what is allowed."
        return Error(str(error), hint=hint, id="resilience_mw.E001")
    message, _, hint = str(error).partition("; ")
    from_node = error.options[0].rpartition(".")[2] in {option.node for option in _options()}
    number = "E003" if from_node else "E002"
    return Error(message, hint=hint.capitalize(), id=f"resilience_mw.{number}")


def _is_flat(name: str) -> bool:
    return name.startswith(ENV_PREFIX)


def _flat(name: str) -> Error:
    """Report a setting that has the name of an environment variable."""
    written = {option.env: option for option in _options()}.get(name)
    hint = f"Remove {name}, which nobody reads."
    if written is not None:
        hint = f'Write {conf.SETTING} = {{"{written.section}": {{"{written.name}": ...}}}}.'
    return Error(f"{name} is no setting.", hint=hint, id="resilience_mw.E003")


def _options() -> list[Option]:
    sections = Config.sections().values()
    return [option for section in sections for option in options_of(section).values()]
