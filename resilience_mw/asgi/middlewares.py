"""The named middlewares: guards with one feature each."""

from __future__ import annotations

from typing import Unpack

from .. import policies
from ..config import Backpressure, Deadline, Health, Limit, note, section_from_kwargs
from ..config.keywords import (
    BackpressureKeywords,
    DeadlineKeywords,
    HealthKeywords,
    LimitKeywords,
)
from ..types import ASGIApp
from .guard import Guard


class HealthMiddleware(Guard):
    """Answer liveness, readiness and start-up probes before anything else.

    Args:
        app: the ASGI app to wrap.
        options: the fields of `resilience_mw.Health`.

    Raises:
        ConfigError: an option is unknown or its value breaks a rule.
    """

    def __init__(self, app: ASGIApp, **options: Unpack[HealthKeywords]) -> None:
        super().__init__(app, *policies.for_health(section_from_kwargs(Health, options)))
        note(self, app, Health(**options))


class DeadlineMiddleware(Guard):
    """Give each request a deadline; see `resilience_mw.asgi.guard` for how it is enforced.

    Args:
        app: the ASGI app to wrap.
        options: the fields of `resilience_mw.Deadline`.

    Raises:
        ConfigError: an option is unknown or its value breaks a rule.
    """

    def __init__(self, app: ASGIApp, **options: Unpack[DeadlineKeywords]) -> None:
        super().__init__(app, *policies.for_deadline(section_from_kwargs(Deadline, options)))
        note(self, app, Deadline(**options))


class ConcurrencyLimitMiddleware(Guard):
    """Refuse at once what would run beside more than a fixed number of requests.

    Args:
        app: the ASGI app to wrap.
        options: the fields of `resilience_mw.Limit`.

    Raises:
        ConfigError: an option is unknown or its value breaks a rule.
    """

    def __init__(self, app: ASGIApp, **options: Unpack[LimitKeywords]) -> None:
        super().__init__(app, *policies.for_limit(section_from_kwargs(Limit, options)))
        note(self, app, Limit(**options))


class BackpressureMiddleware(Guard):
    """Hold the number of running requests at what the server can bear; queue some, refuse more.

    Args:
        app: the ASGI app to wrap.
        options: the fields of `resilience_mw.Backpressure`.

    Raises:
        ConfigError: an option is unknown or its value breaks a rule.
    """

    def __init__(self, app: ASGIApp, **options: Unpack[BackpressureKeywords]) -> None:
        section = section_from_kwargs(Backpressure, options)
        super().__init__(app, *policies.for_backpressure(section))
        note(self, app, Backpressure(**options))
