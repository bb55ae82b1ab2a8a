"""From options to policies: what both protocols and Django build their guards of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .config import Backpressure, Config, Deadline, Health, Limit
from .core.adaptive import AdaptiveGate
from .core.deadline import DeadlinePolicy
from .core.exchange import Exchange
from .core.gate import Gate
from .core.health import HealthPolicy
from .core.laws import AIMD, Adaptive, Law
from .core.policy import Policy
from .core.priority import PriorityGate
from .core.ranking import Ranking
from .core.shadow import Shadow
from .signals.proxies import TrustedProxies


def for_health(options: Health) -> list[Policy]:
    """Build the probes."""
    return [HealthPolicy(options.live_path, options.ready_path, options.startup_path)]


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


def for_backpressure(options: Backpressure, ceiling: int = 0) -> list[Policy]:
    """Build the gate whose limit follows the load; none if it is off.

    Args:
        options: the section.
        ceiling: a fixed limit further out, above which the law must not climb; 0 = none.
    """
    if not options.enabled:
        return []
    law = _law(options, min(options.max_limit, ceiling or options.max_limit))
    rest: dict[str, Any] = {
        "max_queue": options.queue_size,
        "exempt": options.exempt,
        "smoothing_factor": options.smoothing_factor,
        "trusted_proxies": options.trusted_proxies,
    }
    gate = AdaptiveGate(law, **rest)
    if options.priority is not None:
        ranking = Ranking(_classifier(options), options.user)
        gate = PriorityGate(law, ranking, max_wait=options.max_wait, **rest)
    return [Shadow(gate) if options.dry_run else gate]


def for_all(config: Config) -> list[Policy]:
    """Build everything, outermost first: probes, deadlines, fixed limit, adaptive limit."""
    return [
        *for_health(config.health),
        *for_deadline(config.deadline),
        *for_limit(config.limit),
        *for_backpressure(config.backpressure, config.limit.max_concurrent_requests),
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


def _classifier(options: Backpressure) -> Callable[[Exchange], str | None]:
    priority = options.priority
    if not isinstance(priority, str):
        assert priority is not None
        return priority
    proxies = TrustedProxies(options.trusted_proxies)

    def by_header(exchange: Exchange) -> str | None:
        # Whoever configures a header without proxies says that theirs sets or strips it.
        if proxies and not proxies.trusts(exchange.peer):
            return None
        value = exchange.header(priority)
        return None if value is None else value.strip().lower()

    return by_header
