"""From the options to what asks the checks."""

from __future__ import annotations

from ..config import Health, options_of
from ..core.shedding import Shedding
from ..exceptions import ConfigError
from .asking import SHEDDING
from .check import Check
from .monitor import Monitor
from .specs import from_spec

_OPTIONS = options_of(Health)


def monitor_of(options: Health) -> Monitor:
    """Return what asks the checks of the options.

    Raises:
        ConfigError: a check cannot be built, or the one to forward does not exist.
    """
    checks = {name: check_of(name, what) for name, what in options.checks.items()}
    shedding = None
    if options.unready_when_shedding is not None:
        if SHEDDING in (name.lower() for name in checks):
            rule = f'must not hold the name "{SHEDDING}" beside health.unready_when_shedding'
            raise _OPTIONS["checks"].error(rule, list(checks))
        share, seconds = options.unready_when_shedding  # type: ignore[misc]
        shedding = Shedding(share, seconds)
    return Monitor(checks, forward=_forward(options, checks), shedding=shedding)


def check_of(name: str, what: object) -> Check:
    """Return the check that one of the options stands for.

    Raises:
        ConfigError: it cannot be built; the message names the option and the check.
    """
    if isinstance(what, Check):
        return what
    try:
        return from_spec(what) if isinstance(what, str) else Check(what)  # type: ignore[arg-type]
    except ConfigError as error:
        raise ConfigError(
            f"{_OPTIONS['checks'].dotted} {name}: {error}", options=(_OPTIONS["checks"].dotted,)
        ) from error.__cause__  # what went wrong in a module of the user's, if that is it


def _forward(options: Health, checks: dict[str, Check]) -> str | None:
    """Return the name of the check whose status is passed on, if any is."""
    asking = [name for name, check in checks.items() if hasattr(check, "status")]
    known = ", ".join(asking) or "there is none"
    if options.forward_check is not None:
        if options.forward_check not in asking:
            rule = f"must be one of the health.checks that ask an upstream ({known})"
            raise _OPTIONS["forward_check"].error(rule, options.forward_check)
        return options.forward_check
    if options.forward_path is not None and not asking:
        rule = "needs one of the health.checks to ask an upstream"
        raise _OPTIONS["forward_path"].error(rule, options.forward_path)
    return asking[0] if asking else None
