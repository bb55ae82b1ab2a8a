"""From options to policies: what both protocols and Django build their guards of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .config import Backpressure, Config, Deadline, Health, Limit
from .core.adaptive import AdaptiveGate
from .core.deadline import DeadlinePolicy
from .core.exchange import Exchange
from .core.gate import Gate
from .core.health import Checks, Details, HealthPolicy
from .core.laws import AIMD, Adaptive, Law
from .core.policy import Policy
from .signals.proxies import TrustedProxies


def for_health(options: Health) -> list[Policy]:
    """Build the probes.

    Raises:
        ConfigError: a check cannot be built, or the one to forward does not exist.
    """
    checks: Checks | None = None
    details: Details | None = None
    # Imported here so that nobody pays for what is off.
    if (
        options.checks
        or options.forward_path
        or options.forward_check
        or options.unready_when_shedding
    ):
        from .health.building import monitor_of

        checks = monitor_of(options)
    if options.expose_details or options.trusted:
        from .health.details import Details as Describing

        details = Describing(("*",) if options.expose_details else options.trusted)
    policy = HealthPolicy(
        options.live_path,
        options.ready_path,
        options.startup_path,
        checks=checks,
        forward_path=options.forward_path,
        failure_status=options.failure_status,
        details=details,
    )
    if options.port:
        from .health.listener import OutOfBand

        policy.apart = OutOfBand(policy, options)
    return [policy]


def for_deadline(options: Deadline) -> list[Policy]:
    """Build the deadlines; none if both are off and no header may set one."""
    if options.timeout is None and not options.receive_timeout and options.header is None:
        return []
    return [
        DeadlinePolicy(
            options.timeout, receive_timeout=options.receive_timeout, header=options.header
        )
    ]


def for_limit(options: Limit) -> list[Policy]:
    """Build the fixed limit; none if it is off."""
    if not options.max_concurrent_requests:
        return []
    return [Gate(options.max_concurrent_requests, exempt=options.exempt, name="limit")]


def for_backpressure(
    options: Backpressure, ceiling: int = 0, *, threads: bool = False
) -> list[Policy]:
    """Build the gate whose limit follows the load; none if it is off.

    Args:
        options: the section.
        ceiling: a fixed limit further out, above which the law must not climb; 0 = none.
        threads: whether whoever waits keeps a thread, which is what the others wait for. There
            our own law lets nobody wait, unless ``queue_size`` was set.
    """
    if not options.enabled:
        return []
    waiting = not threads or options.law == "aimd" or "queue_size" in options.given
    law = _law(options, min(options.max_limit, ceiling or options.max_limit))
    rest: dict[str, Any] = {
        "max_queue": options.queue_size if waiting else 0,
        "exempt": options.exempt,
        "smoothing_factor": options.smoothing_factor,
        "trusted_proxies": options.trusted_proxies,
    }
    if options.priority is None and options.user is None:
        gate = AdaptiveGate(law, **rest)
    else:
        gate = _priority_gate(law, options, rest)
    return [_shadow(gate) if options.dry_run else gate]


def for_all(config: Config, *, threads: bool = False) -> list[Policy]:
    """Build everything, outermost first: probes, deadlines, fixed limit, adaptive limit."""
    ceiling = config.limit.max_concurrent_requests
    return [
        *for_health(config.health),
        *for_deadline(config.deadline),
        *for_limit(config.limit),
        *for_backpressure(config.backpressure, ceiling, threads=threads),
    ]


def _law(options: Backpressure, ceiling: int) -> Law:
    if options.law == "adaptive":
        return Adaptive(
            min_limit=min(options.min_limit, ceiling),
            max_limit=ceiling,
            elu_max=options.elu_max,
            window=options.sample_window,
            max_wait=options.max_wait,
            queue_timeout=options.queue_timeout,
        )
    return AIMD(
        initial_limit=options.initial_limit,
        min_limit=min(options.min_limit, ceiling),
        max_limit=ceiling,
        elu_max=options.elu_max,
        window=options.sample_window,
        queue_timeout=options.queue_timeout,
    )


def _priority_gate(law: Law, options: Backpressure, rest: dict[str, Any]) -> AdaptiveGate:
    # Imported here, and for dry runs below, so that nobody pays for what is off.
    from .core.priority import PriorityGate
    from .core.ranking import Ranking

    ranking = Ranking(_classifier(options), options.user)
    return PriorityGate(
        law, ranking, max_wait=options.max_wait, queue_timeout=options.queue_timeout, **rest
    )


def _shadow(gate: AdaptiveGate) -> Policy:
    from .core.shadow import Shadow

    return Shadow(gate)


def _classifier(options: Backpressure) -> Callable[[Exchange], str | None]:
    priority = options.priority
    if isinstance(priority, str):
        return _by_header(priority, TrustedProxies(options.trusted_proxies))
    return _alike if priority is None else priority


def _by_header(name: str, proxies: TrustedProxies) -> Callable[[Exchange], str | None]:
    def classify(exchange: Exchange) -> str | None:
        # Whoever names a header, but no proxies, says that theirs sets or strips it.
        if proxies and not proxies.trusts(exchange.certain_peer):
            return None
        value = exchange.header(name)
        # Of several, the last: the nearest proxy's.
        return None if value is None else value.rpartition(",")[2].strip().lower() or None

    return classify


def _alike(exchange: Exchange) -> None:
    """Have every request in the same class."""
