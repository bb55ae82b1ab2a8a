"""A new stack that is worse is taken back by itself, here and in the store."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from resilience_mw import RolloutGuard, RolloutRule
from resilience_mw.core import Share
from resilience_mw.core.rollout.comparison import Comparison
from resilience_mw.rollout.stores import open_store
from tests.asgi.harness import Exchange, Holding, hello, run, scope

from .drivers import ASGI, DRIVERS, WSGI, rule_of

RULES = [RolloutRule("r", path="/a", percent=50, by="request")]
PATIENCE = 10.0
GUARD = RolloutGuard(window=5.0, min_samples=20)


def held_after(driver: Any, app: Any, most: int) -> int:
    """Send requests until the rule is held; return how many, or fail."""
    for count in range(most):
        if rule_of(app).held:
            return count
        driver.get(app, "/a")
    raise AssertionError(f"not held after {most} requests: {rule_of(app)}")


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_stack_that_fails_is_taken_back_everywhere(
    driver: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    """At once here; the store has it with the figures, and other servers follow."""
    url = f"file:{tmp_path}/rollout.toml"
    apps = [
        driver.Middleware(
            driver.app("old"), new=driver.app("new", 500), rules=RULES, store=url, guard=GUARD
        )
        for _ in range(2)
    ]
    with caplog.at_level(logging.WARNING, "resilience_mw"):
        held_after(driver, apps[0], 400)
    assert {driver.get(apps[0], "/a").text for _ in range(20)} == {"old"}
    (record,) = [r for r in caplog.records if "taken back" in r.getMessage()]
    assert record.getMessage().startswith("rollout rule r: taken back to 0 and held: errors: ")
    deadline = time.monotonic() + 10
    while not rule_of(apps[1]).held:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    change = open_store(url).history(1)[0]
    assert (change.who, change.rule, change.after) == ("guard", "r", Share(0, held=True))
    assert "errors: failed 100 % of" in change.why
    for app in apps:
        app.close()


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("guard", [True, False])
def test_a_stack_that_is_as_good_stays(driver: Any, guard: bool):
    """And so does one that is worse, if nobody guards."""
    new = driver.app("new") if guard else driver.app("new", 500)
    app = driver.Middleware(driver.app("old"), new=new, rules=RULES, guard=guard)
    for _ in range(400):
        driver.get(app, "/a")
    assert not rule_of(app).held
    assert rule_of(app).new.requests > 100


@pytest.mark.parametrize("driver", DRIVERS)
def test_refusals_and_testers_are_no_reason(driver: Any):
    """Nor is a failure that both stacks have."""
    busy = driver.app("new", 503, [("Retry-After", "1")])
    broken = driver.app("x", 500)
    for old, new in ((driver.app("old"), busy), (broken, broken)):
        app = driver.Middleware(
            old,
            new=new,
            rules=RULES,
            guard=GUARD,
            tester_header="X-Tester",
            trusted_proxies=["10.0.0.1"],
        )
        for _ in range(300):
            driver.get(app, "/a")
        assert not rule_of(app).held
    failing = driver.Middleware(
        driver.app("old"),
        new=driver.app("x", 500),
        rules=[RolloutRule("r", path="/a")],
        guard=GUARD,
        tester_header="X-Tester",
        trusted_proxies=["10.0.0.1"],
    )
    for _ in range(300):
        driver.get(failing, "/a")
        driver.get(failing, "/a", headers={"X-Tester": "new"}, peer="10.0.0.1")
    assert rule_of(failing).testers.errors == 300
    assert not rule_of(failing).held


@pytest.mark.parametrize("driver", DRIVERS)
def test_after_a_person_has_cleared_it_the_past_is_forgotten(driver: Any):
    """A new stack that has been mended is not judged by what it was."""
    failing = True

    def new(*call: Any) -> Any:
        return (driver.app("new", 500) if failing else driver.app("new"))(*call)

    async def new_async(*call: Any) -> None:
        await new(*call)

    app = driver.Middleware(
        driver.app("old"), new=new_async if driver is ASGI else wsgi(new), rules=RULES, guard=GUARD
    )
    held_after(driver, app, 400)
    failing = False
    app.policies[0].shares = {"r": Share(50)}
    for _ in range(300):
        driver.get(app, "/a")
    assert not rule_of(app).held


def wsgi(app: Any) -> Any:
    """Give ``app`` a signature that tells its protocol."""
    return lambda environ, start_response: app(environ, start_response)


def test_a_stack_that_hangs_is_taken_back_without_an_answer():
    """Also where nothing ever ends: those who come see how many wait, and for how long."""
    new = Holding()
    app: Any = ASGI.Middleware(
        hello,
        new=new,
        rules=[RolloutRule("r", path="/a")],
        guard=RolloutGuard(window=1.0, min_samples=20),
    )

    async def main() -> None:
        for _ in range(100):
            await Exchange(scope("/a")).through(app)
        app.policies[0].shares = {"r": Share(100)}
        tasks = []
        async with asyncio.timeout(8):
            while not rule_of(app).held:
                tasks.append(Exchange(scope("/a")).start(app))
                await asyncio.sleep(0.01)
        new.go.set()
        await asyncio.gather(*tasks)

    run(main())
    assert rule_of(app).held


def test_threads_that_all_hang_are_seen_by_one_that_does_not():
    """Nobody comes any more, and the rule is taken back all the same; then the watch ends."""
    go = threading.Event()

    def new(environ: Any, start_response: Any) -> Any:
        go.wait(PATIENCE)
        return WSGI.app("new")(environ, start_response)

    app: Any = WSGI.Middleware(
        WSGI.app("old"),
        new=new,
        rules=[RolloutRule("r", path="/a")],
        guard=RolloutGuard(window=1.0, min_samples=8),
    )
    for _ in range(100):
        WSGI.get(app, "/a")
    app.policies[0].shares = {"r": Share(100)}
    time.sleep(0.06)  # the next one begins a new part of the window
    threads = [threading.Thread(target=WSGI.get, args=(app, "/a")) for _ in range(12)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + PATIENCE
    while not rule_of(app).held:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    go.set()
    for thread in threads:
        thread.join()
    while any(t.name == "resilience_mw.rollout.watch" for t in threading.enumerate()):
        assert time.monotonic() < deadline + PATIENCE
        time.sleep(0.02)


@pytest.mark.parametrize("driver", DRIVERS)
def test_what_failed_before_a_person_took_it_back_is_forgotten(driver: Any, tmp_path: Path):
    """A new stack that was mended meanwhile is judged by what it does from then on."""
    store = open_store(f"file:{tmp_path}/rollout.toml")
    old, bad = driver.app("old"), driver.app("new", 500)
    app = driver.Middleware(old, new=bad, rules=RULES, store=store, guard=GUARD)

    def share(percent: float) -> None:
        store.change("r", percent, who="anna")
        deadline = time.monotonic() + 10
        while rule_of(app).percent != percent:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    while rule_of(app).new.requests < GUARD.min_samples - 1:
        driver.get(app, "/a")
    share(0)
    share(50)
    for variant in app.policies[0].lanes[0].apps[1:]:
        variant.app = driver.app("new")
    for _ in range(300):
        driver.get(app, "/a")
    assert rule_of(app).new.requests > 100
    assert not rule_of(app).held
    app.close()


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_guard_that_fails_costs_no_request(
    driver: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """It is off from then on, and the log says so once."""

    def failing(self: Any, now: float) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(Comparison, "verdict", failing)
    # A name of its own: another test's thread may still look at its guard.
    rules = [RolloutRule("failing", path="/a", percent=100)]
    app = driver.Middleware(
        driver.app("old"), new=driver.app("new"), rules=rules, guard=RolloutGuard(window=0.02)
    )
    for _ in range(20):
        time.sleep(0.002)
        assert driver.get(app, "/a").status == 200
    (record,) = [r for r in caplog.records if "failing: its guard failed" in r.getMessage()]
    assert record.exc_info is not None
    assert not rule_of(app).held


def test_threads_lose_no_count():
    """Counts are exact under WSGI, whoever else is counting."""
    app = WSGI.Middleware(WSGI.app("old"), new=WSGI.app("new", 404), rules=RULES)

    def work() -> None:
        for _ in range(300):
            WSGI.get(app, "/a")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rule = rule_of(app)
    assert rule.old.requests + rule.new.requests == 2400
