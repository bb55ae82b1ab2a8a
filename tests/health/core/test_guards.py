"""Checks behind guards: when they begin and end, in which loop, and what is exempt."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from resilience_mw import Config, ConfigError, Health, Limit, asgi, protect, wsgi
from resilience_mw.core import Gate, HealthPolicy, Reply
from resilience_mw.health import Check, Monitor
from tests.asgi import harness
from tests.health.core.waiting import in_child, until
from tests.health.lifespans import live
from tests.wsgi.harness import call


def passes() -> None:
    """Pass."""


def monitor_of(guard: Any) -> Monitor:
    """Return what asks the checks of a guard."""
    (health,) = [policy for policy in guard.policies if isinstance(policy, HealthPolicy)]
    assert isinstance(health.checks, Monitor)
    return health.checks


def ready(guard: Any) -> bool:
    """Whether readiness would be 200; asked as the out-of-band listener does."""
    (health,) = [policy for policy in guard.policies if isinstance(policy, HealthPolicy)]
    reply = health.answer("/readyz", "GET")
    assert isinstance(reply, Reply)
    return reply.status == 200


async def hello(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        await live(receive, send)
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"hello"})


def greet(environ: Any, start_response: Any) -> list[bytes]:
    start_response("200 OK", [("Content-Length", "5")])
    return [b"hello"]


class Life:
    """The lifespan of an app, as a server drives it."""

    def __init__(self, app: Any) -> None:
        self._messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._sent: asyncio.Queue[Any] = asyncio.Queue()
        self._task = asyncio.ensure_future(
            app({"type": "lifespan"}, self._messages.get, self._sent.put)
        )

    async def say(self, what: str) -> None:
        """Tell the app, and wait for its answer."""
        await self._messages.put({"type": f"lifespan.{what}"})
        assert (await self._sent.get())["type"] == f"lifespan.{what}.complete"
        if what == "shutdown":
            await self._task


def test_coroutines_run_in_the_apps_loop_from_its_start_to_its_end():
    """Its pools are bound to that loop, and closed when it ends."""
    where: list[Any] = []

    async def probe() -> None:
        where.append(asyncio.get_running_loop())

    guard = protect(hello, Config(health=Health(checks={"db": Check(probe, interval=0.005)})))

    async def main() -> None:
        assert not ready(guard)
        for _ in range(2):  # an app may be started again
            where.clear()
            life = Life(guard)
            await asyncio.sleep(0.02)
            assert where == []
            await life.say("startup")
            await harness.until(lambda: ready(guard))
            assert set(where) == {asyncio.get_running_loop()}
            await life.say("shutdown")
            count = len(where)
            assert not ready(guard)
            await asyncio.sleep(0.03)
            assert len(where) == count

    harness.run(main())


def test_the_first_probe_is_told_what_is_so():
    """A server is told that the app has started when the first answers are there, if they come."""

    def hangs() -> None:
        threading.Event().wait(5)

    async def main() -> None:
        for probe, in_time in ((passes, True), (hangs, False)):
            guard = asgi.HealthMiddleware(hello, checks={"db": Check(probe, timeout=5)})
            life = Life(guard)
            began = time.monotonic()
            await life.say("startup")
            assert ready(guard) is in_time
            assert time.monotonic() - began < 4
            await life.say("shutdown")

    harness.run(main())


@pytest.mark.parametrize("loop", harness.LOOPS)
def test_a_blocked_loop_fails_its_own_checks_only(loop: str):
    """The monitor goes on meanwhile, and the check recovers with the loop."""
    beside: list[float] = []

    async def probe() -> None:
        await asyncio.sleep(0)

    checks = {
        "pool": Check(probe, interval=0.02, timeout=0.05),
        "disk": Check(lambda: beside.append(time.monotonic()), interval=0.02),
    }
    guard = protect(hello, Config(health=Health(checks=checks)))
    seen: list[tuple[bool, ...]] = []

    def look() -> None:
        time.sleep(0.3)
        seen.append(tuple(result.passing for result in monitor_of(guard).results()))

    async def main() -> None:
        life = Life(guard)
        await life.say("startup")
        await harness.until(lambda: ready(guard))
        count = len(beside)
        looking = threading.Thread(target=look)
        looking.start()
        looking.join()  # blocks the loop
        assert seen == [(False, True)]
        assert len(beside) > count + 3
        await harness.until(lambda: ready(guard))
        await life.say("shutdown")

    harness.run(main(), loop)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_an_app_that_forks_goes_on():
    """Though nobody has probed it yet, it serves: it has an event loop."""

    async def probe() -> None:
        await asyncio.sleep(0)

    guard = asgi.HealthMiddleware(hello, checks={"db": Check(probe, interval=0.01)})

    async def main() -> None:
        life = Life(guard)
        await life.say("startup")
        await harness.until(lambda: monitor_of(guard).ready)
        assert in_child(lambda: not monitor_of(guard).ready)
        await harness.until(lambda: monitor_of(guard).ready)
        await life.say("shutdown")

    harness.run(main())


def ahead_status(guard: asgi.Guard) -> int:
    """Probe readiness as our runner does, in the protocol."""
    reply = guard.ahead(harness.scope("/readyz"), harness.Exchange().send)
    assert reply is not None
    return reply.status


def test_without_a_lifespan_the_first_request_begins():
    """Also where it is a probe, and where it is answered ahead."""
    checks = {"db": Check(passes, interval=0.01)}

    async def main(ahead: bool) -> None:
        guard = asgi.HealthMiddleware(hello, checks=checks)
        if ahead:
            for policy in guard.policies:
                if isinstance(policy, HealthPolicy):
                    policy.lifecycle.advance(policy.lifecycle.state.READY)
            await harness.until(lambda: ahead_status(guard) == 200)
        else:
            await harness.call(guard)
            await harness.until(lambda: ready(guard))
            assert (await harness.call(guard, "/readyz")).status == 200
            slashed = await harness.call(guard, "/readyz", root="/mount", query_string=b"verbose")
            assert (slashed.status, slashed.text) == (200, b"ok")
        guard.close()

    harness.run(main(False))
    harness.run(main(True))


def test_under_wsgi_they_begin_at_once():
    """There is nothing later to wait for; coroutine functions get a loop of their own."""

    async def probe() -> None:
        await asyncio.sleep(0)

    checks = {"db": Check(passes, interval=0.01), "cache": Check(probe, interval=0.01)}
    guard = protect(greet, Config(health=Health(checks=checks)))
    until(lambda: ready(guard))
    assert call(guard, "/readyz") == (200, b"ok")
    assert call(guard, "/readyz", root="/mount", QUERY_STRING="verbose") == (200, b"ok")
    guard.close()


def test_a_merged_guard_asks_once():
    """Five middlewares are one guard with one monitor."""
    app = asgi.HealthMiddleware(
        asgi.ConcurrencyLimitMiddleware(hello, max_concurrent_requests=1),
        checks={"db": Check(passes)},
    )
    assert len(app.policies) == 2
    inner = wsgi.HealthMiddleware(greet, checks={"db": Check(passes, interval=0.01)})
    outer = wsgi.ConcurrencyLimitMiddleware(inner, max_concurrent_requests=1)
    until(lambda: ready(outer))
    outer.close()


@pytest.mark.parametrize("driver", [asgi, wsgi])
def test_readiness_turns_while_too_much_is_refused(driver: Any):
    """By the gates of the same guard; and turns back when it is over."""
    options = Config(
        limit=Limit(max_concurrent_requests=1), health=Health(unready_when_shedding=(0.5, 1.0))
    )
    guard = protect(greet if driver is wsgi else hello, options)
    (gate,) = [p for p in guard.policies if type(p) is Gate]
    monitor = monitor_of(guard)
    monitor.start()
    assert monitor.ready

    def overloaded() -> bool:
        gate.refused["limit"] = gate.refused.get("limit", 0) + 10
        gate.admitted += 5
        return not monitor.ready

    until(overloaded)
    (result,) = monitor.results()
    assert (result.name, result.passing, result.reason) == ("shedding", False, "refusing too much")
    until(lambda: monitor.ready)
    monitor.close()


WRONG: list[tuple[dict[str, Any], str]] = [
    (
        {"checks": {"db": passes}, "forward_path": "/status"},
        "health.forward_path needs one of the health.checks to ask an upstream, got '/status'",
    ),
    (
        {"forward_path": "/status"},
        "health.forward_path needs one of the health.checks to ask an upstream, got '/status'",
    ),
    (
        {"checks": {"db": passes, "up": "http://h/"}, "forward_check": "db"},
        "health.forward_check must be one of the health.checks that ask an upstream (up), got 'db'",
    ),
    (
        {"checks": {"Shedding": passes}, "unready_when_shedding": 0.5},
        'health.checks must not hold the name "shedding" beside health.unready_when_shedding, '
        "got ['Shedding']",
    ),
    (
        {"checks": {"up": "http://host:0/"}},
        "health.checks up: UpstreamCheck port must be between 1 and 65535, got 0",
    ),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_what_cannot_be_built_is_one_line(options: dict[str, Any], message: str):
    """It names the option, the rule and the value."""
    with pytest.raises(ConfigError) as caught:
        protect(hello, Config(health=Health(**options)))
    assert str(caught.value) == message


def test_the_check_to_forward_can_be_chosen():
    """The first that asks an upstream is the default."""
    checks = {"db": passes, "a": "http://a/", "b": "http://b/"}

    def forwards(**options: Any) -> str | None:
        health = Health(checks=checks, forward_path="/status", **options)
        return monitor_of(protect(hello, Config(health=health)))._forward

    assert forwards() == "a"
    assert forwards(forward_check="b") == "b"
