"""The public interface as a type checker sees it: checked by mypy, and run by a test.

An ignore that is not needed is an error in strict mode: so each one below says that a mistake is
found before the program runs.
"""

from __future__ import annotations

from typing import assert_type

from starlette.applications import Starlette
from starlette.middleware import Middleware

import resilience_mw
from resilience_mw import (
    Backpressure,
    Config,
    Deadline,
    Health,
    Limit,
    RolloutGuard,
    RolloutRule,
    Runner,
    protect,
)
from resilience_mw.asgi import (
    BackpressureMiddleware,
    ConcurrencyLimitMiddleware,
    DeadlineMiddleware,
    Guard,
    HealthMiddleware,
    RolloutMiddleware,
)
from resilience_mw.core import Decision, Exchange, Gate, GateSnapshot, Policy, Reply, Snapshot
from resilience_mw.health import Check, CheckResult, Monitor, UpstreamCheck
from resilience_mw.types import ASGIApp, Environ, Receive, Scope, Send, StartResponse, WSGIApp
from resilience_mw.wsgi import ConcurrencyLimitMiddleware as WSGIConcurrencyLimitMiddleware
from resilience_mw.wsgi import Guard as WSGIGuard
from resilience_mw.wsgi import RolloutMiddleware as WSGIRolloutMiddleware


async def asgi_app(scope: Scope, receive: Receive, send: Send) -> None:
    """An ASGI app with the types of this package."""


def wsgi_app(environ: Environ, start_response: StartResponse) -> list[bytes]:
    """A WSGI app with the types of this package."""
    return []


class Night(Policy):
    """A policy of one's own."""

    closed = Reply(503, "Asleep", (("Retry-After", "3600"),), reason="night")

    def enter(self, exchange: Exchange) -> Decision:
        """Refuse all but the start page."""
        return None if exchange.path == "/" and exchange.method == "GET" else self.closed

    def exit(self, exchange: Exchange, now: float) -> None:
        """Look at what is known of the end."""
        assert_type(exchange.status, int)
        assert_type(exchange.waited(now), float)


async def ping() -> None:
    """Ask a database of one's own."""


config = Config(
    limit=Limit(max_concurrent_requests=100, exempt=("/static/",)),
    backpressure=Backpressure(law="aimd", queue_size=10),
    deadline=Deadline(timeout=None, header="X-Request-Timeout"),
    health=Health(
        live_path="/alive",
        checks={"next": UpstreamCheck("http://h/"), "db": Check(ping), "disk": "disk:/"},
        unready_when_shedding=(0.5, 10),
    ),
    runner=Runner(drain_delay=5),
)
assert_type(config.limit.max_concurrent_requests, int)
assert_type(config.deadline.timeout, float | None)
assert_type(Config.from_mapping({"limit": {"max_concurrent_requests": 5}}), Config)
assert_type(resilience_mw.remaining(), float | None)
assert_type(Monitor({"db": Check(ping)}).results(), tuple[CheckResult, ...])

protect(asgi_app, config, Night())
protect(wsgi_app, interface="wsgi")

guard = Guard(asgi_app, Gate(10, max_queue=5, max_wait=1.0), Night())
assert_type(guard.snapshot(), Snapshot)
assert_type(guard.snapshot().limit, int | None)
assert_type(Gate(1).snapshot(), GateSnapshot)
rules = [RolloutRule("cart", path="/cart", methods={"GET"}, percent=2.5, by="user", cookie="id")]
asgi_apps: list[ASGIApp] = [
    guard,
    HealthMiddleware(asgi_app, ready_path="/ready", checks={"db": ping}),
    DeadlineMiddleware(asgi_app, timeout=2.5),
    ConcurrencyLimitMiddleware(asgi_app, max_concurrent_requests=5),
    BackpressureMiddleware(asgi_app, law="adaptive", max_limit=50),
    RolloutMiddleware(asgi_app, new=asgi_app, rules=rules, guard=RolloutGuard(window=10)),
]
wsgi_apps: list[WSGIApp] = [
    WSGIGuard(wsgi_app, Gate(10)),
    WSGIConcurrencyLimitMiddleware(wsgi_app, max_concurrent_requests=5),
    WSGIRolloutMiddleware(wsgi_app, new=wsgi_app, rules=rules, fallback=True),
]
starlette = Starlette(
    middleware=[
        Middleware(ConcurrencyLimitMiddleware, max_concurrent_requests=5),
        Middleware(RolloutMiddleware, new=asgi_app, rules=rules),
    ]
)


def mistakes() -> None:
    """Never run: each line is wrong, and found."""
    Limit(100)  # type: ignore[call-arg]
    Limit(max_concurrent_requests="many")  # type: ignore[arg-type]
    Backpressure(law="vegas")  # type: ignore[arg-type]
    Config(limits=Limit())  # type: ignore[call-arg]
    ConcurrencyLimitMiddleware(asgi_app, max_requests=5)  # type: ignore[call-arg]
    ConcurrencyLimitMiddleware(wsgi_app)  # type: ignore[arg-type]
    WSGIGuard(asgi_app, Gate(1))  # type: ignore[arg-type]
    Guard(asgi_app, 10)  # type: ignore[arg-type]
    protect(asgi_app, interface="http")  # type: ignore[arg-type]
    guard.snapshot().limit = 5  # type: ignore[misc]
    Health(checks=["db"])  # type: ignore[arg-type]
    Check(5)  # type: ignore[arg-type]
    Check(ping, interval="5")  # type: ignore[arg-type]
    RolloutMiddleware(asgi_app, rules=rules)  # type: ignore[call-arg]
    RolloutMiddleware(asgi_app, new=asgi_app, rules="cart")  # type: ignore[arg-type]
    RolloutRule("cart", "/cart")  # type: ignore[call-arg]
    RolloutRule("cart", path="/cart", by="group")  # type: ignore[arg-type]
    RolloutGuard(30)  # type: ignore[call-arg]
