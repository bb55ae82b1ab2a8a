"""Read the ``RESILIENCE`` setting."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, cast

from django.conf import settings

from .. import policies
from ..config import Config, resolve
from ..core.policy import Policy

SETTING = "RESILIENCE"


def setting() -> Mapping[str, Any] | None:
    """Return the setting as it was written; ``None`` if it is missing."""
    return cast("Mapping[str, Any] | None", getattr(settings, SETTING, None))


def options() -> Config:
    """Return the options in force: the environment's, then the setting's, then the defaults.

    Raises:
        ConfigError: an option is unknown or its value breaks a rule.
    """
    return resolve(settings=setting()).config


def enforced(config: Config) -> list[Policy]:
    """Build the policies for ``MIDDLEWARE``; none if limit, backpressure and deadline are all off.

    Receiving is not timed: the whole body is there before Django enters its middlewares (ASGI),
    or a thread reads it that nobody can stop (WSGI).
    """
    deadline = dataclasses.replace(config.deadline, receive_timeout=0)
    row = policies.for_all(dataclasses.replace(config, deadline=deadline))
    probes = policies.for_health(config.health)
    health = config.health
    wanted = len(row) > len(probes) or health.checks or health.forward_path or health.port
    return row if wanted else []
