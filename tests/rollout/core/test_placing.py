"""Guards around a roll-out and inside it, and what runners make of it."""

from __future__ import annotations

import time
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware

from resilience_mw import Config, Health, RolloutRule, protect, remaining
from resilience_mw.asgi import Guard, RolloutMiddleware
from resilience_mw.runner.wrap import guards_of, is_wrapped, wrap
from resilience_mw.wsgi import RolloutMiddleware as WSGIRollout
from tests.asgi.harness import Exchange, Holding, call, hello, run, scope, until

from .drivers import ASGI, DRIVERS, WSGI, rule_of

RULES = [RolloutRule("r", path="/a", percent=100)]


def test_a_gate_outside_limits_both_stacks_together():
    """One slot for two variants."""
    old, new = Holding(), Holding()
    rollout = RolloutMiddleware(old, new=new, rules=RULES)
    app = ASGI.Limit(rollout, max_concurrent_requests=1)

    async def main() -> None:
        first = Exchange(scope("/a")).start(app)
        await until(lambda: new.entered)
        assert (await call(app, "/b")).status == 503
        assert (await call(app, "/a")).status == 503
        new.go.set()
        await first

    run(main())
    rule = rule_of(rollout)
    assert (old.entered, rule.new.requests, rule.new.refusals) == (0, 1, 0)


def test_gates_inside_limit_each_stack_by_itself():
    """Each has a slot of its own, and a refusal is counted as one."""
    old, new = Holding(), Holding()
    app = RolloutMiddleware(
        ASGI.Limit(old, max_concurrent_requests=1),
        new=ASGI.Limit(new, max_concurrent_requests=1),
        rules=RULES,
    )

    async def main() -> None:
        tasks = [Exchange(scope(path)).start(app) for path in ("/a", "/b")]
        await until(lambda: new.entered and old.entered)
        assert (await call(app, "/b")).status == 503
        assert (await call(app, "/a")).status == 503
        new.go.set()
        old.go.set()
        for task in tasks:
            await task

    run(main())
    rule = rule_of(app)
    assert (rule.new.requests, rule.new.refusals, rule.new.errors) == (2, 1, 0)


def test_a_deadline_outside_is_missed_by_the_stack():
    """The client gets its 504 in time, and the new stack an error."""
    new = Holding()
    rollout = RolloutMiddleware(hello, new=new, rules=RULES)
    app = ASGI.Deadline(rollout, timeout=0.05)
    assert run(call(app, "/a")).status == 504
    found = rule_of(rollout).new
    assert (found.requests, found.errors, found.late) == (1, 1, 1)


def test_a_deadline_missed_is_not_passed_on():
    """Its client has been answered: the old stack is not asked."""
    old = Holding()
    rollout = RolloutMiddleware(old, new=Holding(), rules=RULES, fallback=True)
    app = ASGI.Deadline(rollout, timeout=0.05)
    assert run(call(app, "/a")).status == 504
    assert old.entered == 0


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_late_answer_is_an_error(driver: Any):
    """A thread cannot be stopped, so its answer comes, and counts as what it is."""

    def slow(environ: Any, start_response: Any) -> list[bytes]:
        assert 0 < (remaining() or 0) < 1
        time.sleep(0.08)
        start_response("200 OK", [])
        return [b"late"]

    async def slow_async(scope: Any, receive: Any, send: Any) -> None:
        assert 0 < (remaining() or 0) < 1
        time.sleep(0.08)  # noqa: ASYNC251 - so that nobody can answer for it
        await hello(scope, receive, send)

    rollout = driver.Middleware(
        driver.app("old"), new=slow if driver is WSGI else slow_async, rules=RULES
    )
    assert driver.get(driver.Deadline(rollout, timeout=0.04), "/a").status == 200
    assert (rule_of(rollout).new.errors, rule_of(rollout).new.late) == (1, 1)


@pytest.mark.parametrize("driver", DRIVERS)
def test_it_is_not_merged(driver: Any):
    """A guard outside keeps its own policies, one inside stands with its app alone."""
    inner = driver.Limit(driver.app("old"), max_concurrent_requests=5)
    rollout = driver.Middleware(inner, new=driver.app("new"), rules=RULES)
    outer = driver.Limit(rollout, max_concurrent_requests=5)
    assert outer.app is rollout
    assert rollout.app is inner
    assert [len(guard.policies) for guard in (outer, rollout, inner)] == [1, 1, 1]
    assert driver.get(outer, "/a").text == "new"


@pytest.mark.parametrize("driver", DRIVERS)
def test_probes_outside_ask_neither_stack(driver: Any):
    """As `protect()` puts them."""
    failing = driver.app("x", fails=LookupError())
    app = protect(driver.Middleware(failing, new=failing, rules=[RolloutRule("r", prefix="/")]))
    assert driver.get(app, "/livez").status == 200


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_roll_out_alone_is_not_protected(driver: Any):
    """A runner puts `protect()` around it, once."""
    rollout = driver.Middleware(driver.app("old"), new=driver.app("new"), rules=RULES)
    assert not is_wrapped(rollout)
    wrapped = wrap(rollout)
    assert wrapped.added
    assert [type(guard).__name__ for guard in wrapped.guards()] == ["Guard", "RolloutMiddleware"]
    assert not wrap(wrapped.app).added


@pytest.mark.parametrize("driver", DRIVERS)
def test_stacks_that_are_protected_stay_as_they_are(driver: Any):
    """And all guards are found, in the new stack too, so that all of them drain."""
    rollout = driver.Middleware(
        protect(driver.app("old")), new=protect(driver.app("new")), rules=RULES
    )
    wrapped = wrap(rollout)
    assert not wrapped.added
    assert len(wrapped.guards()) == 3
    wrapped.drain()
    assert driver.get(rollout, "/readyz").status == 503


def test_a_roll_out_among_middlewares():
    """An app of Starlette that is given nothing else is protected by a runner."""
    middleware = [Middleware(RolloutMiddleware, new=hello, rules=RULES)]
    app = Starlette(middleware=middleware)
    assert not is_wrapped(app)
    protected = Starlette(middleware=[Middleware(Guard), *middleware])
    assert is_wrapped(protected)
    assert run(call(app, "/a")).text == b"ok"
    assert len(guards_of(app)) == 1


def test_options_reach_a_wrapped_roll_out():
    """Of the runner's configuration."""
    rollout = WSGIRollout(WSGI.app("old"), new=WSGI.app("new"), rules=RULES)
    app = wrap(rollout, Config(health=Health(live_path="/up"))).app
    assert WSGI.get(app, "/up").status == 200
    assert WSGI.get(app, "/a").text == "new"
