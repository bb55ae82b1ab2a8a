"""What contradicts among the options of the probes, and with the server they are for."""

from __future__ import annotations

from collections.abc import Iterator

from ..config import Config
from ..exceptions import ConfigError
from ..health.check import Check
from .findings import Finding


def health(config: Config, ports: tuple[int, ...]) -> Iterator[Finding]:
    """Yield what contradicts.

    Args:
        config: the options.
        ports: those that the server listens on.
    """
    options = config.health
    if options.port and options.port in ports:
        yield Finding(
            "error",
            "health_port",
            f"health.port ({options.port}) must differ from the server's port ({options.port}): "
            "else one of the two cannot be opened",
            {"health.port": options.port, "port": options.port},
        )
    for name, what in options.checks.items():
        yield from _check(name, what)
    limited = config.limit.max_concurrent_requests or config.backpressure.enabled
    if options.unready_when_shedding is not None and not limited:
        yield Finding(
            "warning",
            "shedding",
            f"health.unready_when_shedding ({_share(options.unready_when_shedding)}) never acts: "
            "limit.max_concurrent_requests is 0 and backpressure.enabled is false, so that "
            "nothing is refused",
            {"health.unready_when_shedding": _share(options.unready_when_shedding)},
        )


def _check(name: str, what: object) -> Iterator[Finding]:
    try:
        check = _built(what)
    except ConfigError as error:
        yield Finding("error", "health_check", f"health.checks {name}: {error}", {"check": name})
        return
    if check is not None and check.timeout >= check.interval:
        yield Finding(
            "warning",
            "check_timeout",
            f"the timeout of the check {name} ({check.timeout:g} s) should be < its interval "
            f"({check.interval:g} s): else what hangs is asked again without a pause",
            {"timeout": check.timeout, "interval": check.interval},
        )


def _built(what: object) -> Check | None:
    """Return the check that a text stands for; ``None`` = a callable, with the defaults."""
    if isinstance(what, str):
        from ..health.specs import from_spec

        return from_spec(what)
    return what if isinstance(what, Check) else None


def _share(value: object) -> str:
    share = value[0] if isinstance(value, tuple) else value
    return f"{share:g}" if isinstance(share, int | float) else str(share)
