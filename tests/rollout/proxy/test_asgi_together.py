"""A roll-out to an upstream, with gates, deadlines and probes around it: ASGI."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from resilience_mw import RolloutRule
from resilience_mw.asgi import (
    ConcurrencyLimitMiddleware,
    DeadlineMiddleware,
    HealthMiddleware,
    RolloutMiddleware,
)
from resilience_mw.rollout.proxy.asgi import proxy
from tests.asgi.harness import Exchange, Holding, run, scope

from .asking import eventually, nobody

RULES = [RolloutRule("all", prefix="/", percent=50, by="user", header="x-user")]
EVERYBODY = [RolloutRule("all", prefix="/", percent=100)]


def asking(path: str, user: str, method: str = "GET") -> Exchange:
    """Return a request of a user."""
    return Exchange(scope(path, method=method, headers=[(b"x-user", user.encode())]))


async def users(app: Any) -> tuple[str, str]:
    """Return a user of the old and one of the new stack."""
    found: dict[bytes, str] = {}
    for number in range(50):
        exchange = await asking("/quick", str(number)).through(app)
        assert exchange.status == 200
        found[exchange.headers[b"x-variant"]] = str(number)
    return found[b"old"], found[b"new"]


class Old(Holding):
    """The old stack: `/hang` is held, the rest answered at once."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request."""
        if scope["path"] == "/hang":
            self.entered += 1
            await self.go.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"old"})


async def hold(app: Any, user: str, entered: Callable[[], int]) -> tuple[Exchange, Any]:
    """Let a user's request hang in its stack."""
    before = await asyncio.to_thread(entered)
    exchange = asking("/hang", user)
    call = exchange.start(app)
    await eventually(lambda: entered() > before)
    return exchange, call


@pytest.mark.parametrize("inside", [False, True], ids=["outside", "inside"])
def test_a_gate_counts_what_is_behind_it(upstream, seen, inside):
    """Outside of the roll-out both stacks together, inside each by itself."""

    async def main() -> None:
        old, new = Old(), proxy(upstream.url)
        app: Any
        if inside:
            app = RolloutMiddleware(
                ConcurrencyLimitMiddleware(old, max_concurrent_requests=1),
                new=ConcurrencyLimitMiddleware(new, max_concurrent_requests=1),
                rules=RULES,
                variant_header="X-Variant",
            )
        else:
            rollout = RolloutMiddleware(old, new=new, rules=RULES, variant_header="X-Variant")
            app = ConcurrencyLimitMiddleware(rollout, max_concurrent_requests=1)
        old_user, new_user = await users(app)
        first, call = await hold(app, new_user, lambda: seen("entered /hang"))
        assert (await asking("/quick", new_user).through(app)).status == 503
        status = (await asking("/quick", old_user).through(app)).status
        assert status == (200 if inside else 503)
        first.gone.set()
        await call
        second, call = await hold(app, old_user, lambda: old.entered)
        assert (await asking("/quick", old_user).through(app)).status == 503
        status = (await asking("/quick", new_user).through(app)).status
        assert status == (200 if inside else 503)
        old.go.set()
        await call
        assert second.status == 200
        await new.aclose()

    run(main())


def test_deadlines_hold_and_are_counted_for_the_new_stack(upstream, seen):
    """The client gets its 504 in time, and the upstream is told that nobody waits."""
    before = seen("left /hang")

    async def main() -> None:
        new = proxy(upstream.url)
        rollout = RolloutMiddleware(Old(), new=new, rules=EVERYBODY)
        app = DeadlineMiddleware(rollout, timeout=0.3)
        exchange = await Exchange(scope("/hang")).through(app)
        assert exchange.status == 504
        await eventually(lambda: seen("left /hang") > before)
        app.close()
        await new.aclose()

    run(main())


def test_a_client_that_leaves_ends_the_call_of_the_new_stack(upstream, seen):
    """Through a gate, a deadline and the roll-out."""
    before = seen("left /hang")

    async def main() -> None:
        new = proxy(upstream.url)
        rollout = RolloutMiddleware(Old(), new=new, rules=EVERYBODY, fallback=True)
        app = DeadlineMiddleware(
            ConcurrencyLimitMiddleware(rollout, max_concurrent_requests=1), timeout=30
        )
        exchange, call = await hold(app, "", lambda: seen("entered /hang"))
        exchange.gone.set()
        await call
        assert exchange.starts == []
        await eventually(lambda: seen("left /hang") > before)
        again = await Exchange(scope("/echo")).through(app)
        assert again.status == 200
        app.close()
        await new.aclose()

    run(main())


def test_probes_are_answered_on_this_side(seen):
    """Whoever is behind the proxy, and if it is nobody."""

    async def main() -> None:
        rollout = RolloutMiddleware(Old(), new=nobody(), rules=EVERYBODY)
        app = HealthMiddleware(rollout)
        assert (await Exchange(scope("/any")).through(app)).status == 502
        for path in ("/livez", "/readyz"):
            assert (await Exchange(scope(path)).through(app)).status == 200
        app.close()

    run(main())


def test_what_nobody_began_to_answer_goes_back_once():
    """Where nothing is lost by it; a POST is told the truth."""

    async def main() -> None:
        app = RolloutMiddleware(
            Old(), new=nobody(), rules=EVERYBODY, fallback=True, variant_header="X-Variant"
        )
        exchange = await Exchange(scope("/any")).through(app)
        assert (exchange.text, exchange.headers[b"x-variant"]) == (b"old", b"old")
        assert (await Exchange(scope("/any", method="POST")).through(app)).status == 502
        app.close()

    run(main())


@pytest.mark.parametrize("fallback", [True, False])
def test_a_new_stack_that_hangs_costs_its_own_timeout_only(upstream, fallback):
    """Then the old one answers, or 504 does."""

    async def main() -> None:
        old = Old()
        old.go.set()
        new = proxy(upstream.url, timeout=0.2, raises=fallback)
        app = RolloutMiddleware(old, new=new, rules=EVERYBODY, fallback=fallback)
        began = time.monotonic()
        exchange = await Exchange(scope("/hang")).through(app)
        assert exchange.status == (200 if fallback else 504)
        assert time.monotonic() - began < 10
        assert not new.pools.current().idle
        app.close()
        await new.aclose()

    run(main())
