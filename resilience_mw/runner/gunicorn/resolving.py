"""Which options are in force, and which of Gunicorn's settings they make."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...config import ENV_PREFIX, Config, Resolved, options_of, resolve
from ...config.wording import hint, likely
from ...exceptions import ConfigError
from ..drain import MARGIN, head_timeout

VARIABLE = "RESILIENCE"
"""The variable of a ``gunicorn.conf.py``: a `Config`, or a mapping of sections."""

MAPPED = ("keepalive", "graceful_timeout", "timeout")
"""The settings of Gunicorn that are set, unless the user sets them."""

HEARTBEAT = 30
"""Seconds; Gunicorn's own `timeout`, below which ours never goes."""

GRACE = 5
"""Seconds by which `timeout` is above the longest request, so that not the master ends that."""


def settings(config: Config) -> dict[str, int]:
    """Return Gunicorn's settings for the options, in the whole seconds that it takes.

    `graceful_timeout` is what the master grants after the drain delay; workers give up `MARGIN`
    before it, so that what belongs to their end is still run. `timeout` is above the deadlines:
    it kills a worker of one thread in the middle of a request.
    """
    longest = max(config.deadline.receive_timeout, config.deadline.timeout or 0.0)
    return {
        "keepalive": math.ceil(config.runner.keep_alive_timeout),
        "graceful_timeout": math.ceil(config.runner.shutdown_timeout + MARGIN),
        "timeout": max(HEARTBEAT, math.ceil(longest) + GRACE),
    }


@dataclass(frozen=True)
class InForce:
    """The options and settings of one server.

    Attributes:
        config: the options; what was given anywhere counts as given.
        sources: where each option came from.
        keep_alive, head, drain: seconds that an idle connection is kept, that a head may take,
            and that a worker's drain may take.
        theirs: Gunicorn's settings that the user has set, so that the options do not count.
    """

    config: Config
    sources: Mapping[str, str]
    keep_alive: float
    head: float
    drain: float
    theirs: Mapping[str, float]


def from_conf(namespace: Mapping[str, Any]) -> Resolved:
    """Resolve the options with the variables of a ``gunicorn.conf.py``.

    ``RESILIENCE = Config(...)`` counts as given in code. ``RESILIENCE = {"limit": {...}}`` and
    ``RESILIENCE_LIMIT_MAX_CONCURRENT_REQUESTS = 100`` are settings, below the environment.

    Raises:
        ConfigError: a variable is unknown, or its value breaks a rule.
    """
    given = namespace.get(VARIABLE)
    return resolve(given if isinstance(given, Config) else None, settings=variables(namespace))


def variables(namespace: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the variables of a ``gunicorn.conf.py`` that are settings, by section and name.

    Raises:
        ConfigError: a variable is unknown, or its value breaks a rule.
    """
    given = namespace.get(VARIABLE)
    merged: dict[str, dict[str, Any]] = {}
    if not isinstance(given, Config):
        resolve(settings=given)  # what is wrong with the mapping is said in its own name
        merged = {section: dict(values) for section, values in (given or {}).items()}
    for section, values in _single(namespace).items():
        merged.setdefault(section, {}).update(values)
    return merged


def in_force(cfg: Any, exported: Mapping[str, int]) -> InForce:
    """Find out what counts for a server, once all of its sources have been read.

    Args:
        cfg: Gunicorn's configuration. Settings that nobody but us has set are set anew, exactly.
        exported: the settings that we offered before the user's were known.
    """
    resolved = from_conf(conf_namespace(cfg))
    runner = resolved.config.runner
    theirs = {
        name: getattr(cfg, name) for name in MAPPED if getattr(cfg, name) != exported.get(name)
    }
    exact = {
        **settings(resolved.config),
        "keepalive": runner.keep_alive_timeout,
        "graceful_timeout": runner.shutdown_timeout + MARGIN,
    }
    for name, value in exact.items():
        if name not in theirs:
            # Past the validator, which takes whole seconds only; everything counts with fractions.
            cfg.settings[name].value = value
    return InForce(
        config=resolved.config,
        sources=resolved.sources,
        keep_alive=cfg.keepalive,
        head=head_timeout(resolved.config),
        drain=max(0.0, min(runner.shutdown_timeout, cfg.graceful_timeout - MARGIN)),
        theirs=theirs,
    )


configured: Mapping[str, Any] = {}
"""What `configure` was called with last: the options of an application that reads no file."""


def conf_namespace(cfg: Any) -> Mapping[str, Any]:
    """Return the variables of the configuration file that Gunicorn has read, if there is one."""
    location = cfg.config or ""
    name = location.removeprefix("python:") if location.startswith("python:") else "__config__"
    module = sys.modules.get(name)
    return configured if module is None else vars(module)


def _single(namespace: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Read the variables that begin with our prefix; one that we do not know is an error."""
    known = {
        option.env: option
        for section in Config.sections().values()
        for option in options_of(section).values()
    }
    found: dict[str, dict[str, Any]] = {}
    for name in sorted(name for name in namespace if name.startswith(ENV_PREFIX)):
        option = known.get(name)
        if option is None:
            raise ConfigError(f"unknown variable {name}{hint(likely(name, known))}")
        try:
            value = option.check(namespace[name])
        except ConfigError as error:
            raise ConfigError(f"{name}: {error}", options=error.options) from None
        found.setdefault(option.section, {})[option.name] = value
    return found
