"""What contradicts among the options of the probes, and with the server they are for."""

from __future__ import annotations

from collections.abc import Iterator

from ..config import Config, Health
from ..exceptions import ConfigError
from ..policies import for_health
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
    broken = list(_unbuildable(options))
    yield from broken
    if not broken:
        yield from _unanswerable(options)
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


def _unbuildable(options: Health) -> Iterator[Finding]:
    from ..health.building import check_of

    for name, what in options.checks.items():
        try:
            check_of(name, what)
        except ConfigError as error:
            yield Finding("error", "health_check", str(error), {"check": name})


def _unanswerable(options: Health) -> Iterator[Finding]:
    """Find what only the checks together tell, by doing what the server will do."""
    try:
        for_health(options)
    except ConfigError as error:
        yield Finding("error", "health", str(error), {"option": ", ".join(error.options)})


def _share(value: object) -> str:
    share = value[0] if isinstance(value, tuple) else value
    return f"{share:g}" if isinstance(share, int | float) else str(share)
