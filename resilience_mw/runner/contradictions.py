"""Pairs of numbers that cannot both be meant, found before a deploy finds them.

Pure: what surrounds the app is told, not looked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..config import Config
from .drain import MARGIN
from .findings import Finding
from .probing import health

__all__ = ["Finding", "Surroundings", "contradictions"]


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What the options have to agree with; ``None`` = not known, or not there.

    Attributes:
        lb_idle: seconds after which the balancer closes an idle connection.
        grace: seconds from SIGTERM until whoever sent it sends SIGKILL.
        keep_alive: seconds that the server keeps an idle connection.
        worker_timeout: seconds after which Gunicorn's master kills a silent worker.
        graceful_timeout: seconds that Gunicorn's master grants its workers to end.
        one_at_a_time: whether a worker serves one request at a time.
        threads: how many requests a worker serves at once, in threads.
        limit_concurrency: Uvicorn's limit of that name.
        cannot: what the worker class is not able to do: options, and one sentence each.
        worker_class: its name.
        shadowed: probe paths for which the app has routes, too.
        outside: middlewares outside of ours that are built on Starlette's `BaseHTTPMiddleware`.
        ports: those that the server listens on.
        without_effect: options that are given where they do not count: their names, and where
            else to give them.
    """

    lb_idle: float = 60.0
    grace: float = 30.0
    keep_alive: float | None = None
    worker_timeout: float | None = None
    graceful_timeout: float | None = None
    one_at_a_time: bool = False
    threads: int | None = None
    limit_concurrency: int | None = None
    cannot: tuple[tuple[str, str], ...] = ()
    worker_class: str = ""
    shadowed: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    without_effect: tuple[tuple[str, str], ...] = ()


def contradictions(config: Config, around: Surroundings) -> list[Finding]:
    """Return what contradicts, errors first."""
    found = [*_connections(config, around), *_stop(config, around), *_waiting(config, around)]
    found += [*_limits(config, around), *health(config, around.ports), *_app(around)]
    found += _abilities(config, around)
    return sorted(found, key=lambda finding: finding.level != "error")


def _connections(config: Config, around: Surroundings) -> Iterator[Finding]:
    runner = config.runner
    kept = runner.keep_alive_timeout if around.keep_alive is None else around.keep_alive
    if around.one_at_a_time:
        return  # it keeps none
    if kept <= around.lb_idle:
        yield Finding(
            "error",
            "keep_alive",
            f"keep-alive ({kept:g} s) must be > the balancer's idle timeout "
            f"({around.lb_idle:g} s): else the server closes a connection while the balancer is "
            "sending on it, which clients see as 502",
            {"runner.keep_alive_timeout": kept, "lb_idle": around.lb_idle},
        )
    if runner.headers_timeout <= kept:
        yield Finding(
            "warning",
            "headers",
            f"runner.headers_timeout ({runner.headers_timeout:g} s) should be > keep-alive "
            f"({kept:g} s): the usual rule, for servers that count both from the same moment",
            {
                "runner.headers_timeout": runner.headers_timeout,
                "runner.keep_alive_timeout": kept,
            },
        )


def _stop(config: Config, around: Surroundings) -> Iterator[Finding]:
    runner = config.runner
    whole = runner.drain_delay + runner.shutdown_timeout + MARGIN
    if whole > around.grace:
        yield Finding(
            "error",
            "grace",
            f"runner.drain_delay + runner.shutdown_timeout + {MARGIN:g} s "
            f"({runner.drain_delay:g} + {runner.shutdown_timeout:g} + {MARGIN:g} = {whole:g} s) "
            f"must be <= the grace period ({around.grace:g} s): else the process is killed with "
            "requests in flight",
            {"needed": whole, "grace": around.grace},
        )
    granted = around.graceful_timeout
    if granted is not None and granted < runner.shutdown_timeout + MARGIN:
        yield Finding(
            "warning",
            "graceful_timeout",
            f"Gunicorn's graceful_timeout ({granted:g} s) should be >= runner.shutdown_timeout + "
            f"{MARGIN:g} s ({runner.shutdown_timeout + MARGIN:g} s): requests in flight get "
            f"{max(0.0, granted - MARGIN):g} s",
            {"graceful_timeout": granted, "needed": runner.shutdown_timeout + MARGIN},
        )


def _waiting(config: Config, around: Surroundings) -> Iterator[Finding]:
    gate, deadline = config.backpressure, config.deadline.timeout
    queues = gate.enabled and gate.queue_size > 0 and not around.one_at_a_time
    if queues and deadline is not None and gate.queue_timeout >= deadline:
        yield Finding(
            "error",
            "queue_wait",
            f"backpressure.queue_timeout ({gate.queue_timeout:g} s) must be < deadline.timeout "
            f"({deadline:g} s): else a request waits until nothing is left to serve it in",
            {"backpressure.queue_timeout": gate.queue_timeout, "deadline.timeout": deadline},
        )
    killed = around.worker_timeout
    if not killed:
        return
    for name, value in (
        ("deadline.timeout", deadline or 0.0),
        ("deadline.receive_timeout", config.deadline.receive_timeout),
    ):
        if value >= killed:
            yield Finding(
                "error" if around.one_at_a_time else "warning",
                "worker_timeout",
                f"{name} ({value:g} s) must be < Gunicorn's timeout ({killed:g} s): "
                + (
                    "else the whole worker is killed before"
                    if around.one_at_a_time
                    else "else the master may act before it does"
                ),
                {name: value, "timeout": killed},
            )


def _limits(config: Config, around: Surroundings) -> Iterator[Finding]:
    limit, gate = config.limit.max_concurrent_requests, config.backpressure
    if around.threads is not None and limit >= around.threads > 0:
        yield Finding(
            "error",
            "threads",
            f"limit.max_concurrent_requests ({limit}) must be < the threads of a worker "
            f"({around.threads}): else it never acts, because no further request gets that far",
            {"limit.max_concurrent_requests": limit, "threads": around.threads},
        )
    if around.one_at_a_time and gate.enabled and gate.queue_size > 0:
        yield Finding(
            "warning",
            "sync_queue",
            f"backpressure.queue_size ({gate.queue_size}) has no effect on a worker that serves "
            "1 request at a time: nobody could leave the queue",
            {"backpressure.queue_size": gate.queue_size, "threads": 1},
        )
    if around.limit_concurrency is not None:
        yield Finding(
            "warning",
            "limit_concurrency",
            f"--limit-concurrency ({around.limit_concurrency}) counts connections, idle ones "
            "and probes among them: use limit.max_concurrent_requests "
            f"({limit or 'off'}), which counts requests",
            {
                "limit_concurrency": around.limit_concurrency,
                "limit.max_concurrent_requests": limit,
            },
        )


def _app(around: Surroundings) -> Iterator[Finding]:
    for path in around.shadowed:
        yield Finding(
            "warning",
            "probe_path",
            f"the app has a route for {path}, where we answer probes: it is never reached",
            {"path": path},
        )
    for name in around.outside:
        yield Finding(
            "warning",
            "base_http_middleware",
            f"{name}, a BaseHTTPMiddleware, stands outside of our guard: every refusal pays for "
            "it. Add ours after it (the last added is the outermost), or let the runner protect",
            {"middleware": name},
        )


def _abilities(config: Config, around: Surroundings) -> Iterator[Finding]:
    for option, why in around.cannot:
        if option == "health.ready_path" and config.health.port:
            continue  # probes are answered apart
        yield Finding(
            "warning",
            "worker_class",
            f"{option} is limited by the worker class {around.worker_class}: {why}",
            {"option": option, "worker_class": around.worker_class},
        )
    for option, instead in around.without_effect:
        yield Finding(
            "warning",
            "without_effect",
            f"{option} has no effect here: {instead}",
            {"option": option},
        )
