"""Corners of a roll-out that nothing else goes to."""

from __future__ import annotations

import time
from typing import Any

import pytest

from resilience_mw import ConfigError, RolloutGuard, RolloutRule
from resilience_mw.core import RolloutPolicy, Share
from resilience_mw.core.rollout import lane as lanes
from resilience_mw.core.rollout import policy as policies
from resilience_mw.rollout import sign_tester
from tests.asgi.harness import Exchange, run, scope
from tests.core.requests import Request
from tests.wsgi import harness as wsgi_harness

from .drivers import ASGI, DRIVERS, WSGI, rule_of

RULES = [RolloutRule("r", path="/a", percent=100)]


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("fallback", [True, False])
def test_nobody_need_guard(driver: Any, fallback: bool):
    """Everything is counted without a guard, too."""
    new = driver.app("new", fails=LookupError())
    app = driver.Middleware(driver.app("old"), new=new, rules=RULES, guard=False, fallback=fallback)
    for method in ("GET", "POST"):
        if fallback and method == "GET":
            assert driver.get(app, "/a", method=method).text == "old"
        else:
            with pytest.raises(LookupError):
                driver.get(app, "/a", method=method)
    assert (rule_of(app).new.requests, rule_of(app).new.errors) == (2, 2)


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("fallback", [True, False])
def test_whoever_comes_looks(driver: Any, fallback: bool):
    """At the end of each part of a window, though nothing has ended in it."""
    app = driver.Middleware(
        driver.app("old"),
        new=driver.app("new"),
        rules=RULES,
        guard=RolloutGuard(window=0.02),
        fallback=fallback,
    )
    meter = app.policies[0].lanes[0].new
    seen = set()
    for _ in range(5):
        time.sleep(0.003)
        driver.get(app, "/a")
        seen.add(meter.look_at)
    assert len(seen) > 1
    assert not meter.running


@pytest.mark.parametrize("driver", DRIVERS)
def test_an_app_whose_signature_does_not_tell(driver: Any):
    """Is taken for what the old one is."""
    app = driver.Middleware(driver.app("old"), new=untold(driver.app("new")), rules=RULES)
    assert driver.get(app, "/a").text == "new"


def untold(app: Any) -> Any:
    """Hide how ``app`` is called."""
    return lambda *call: app(*call)


@pytest.mark.parametrize("driver", DRIVERS)
def test_testers_by_header_alone(driver: Any):
    """No secret is needed, and a cookie is nothing."""
    app = driver.Middleware(
        driver.app("old"),
        new=driver.app("new"),
        rules=[RolloutRule("r", path="/a")],
        tester_header="X-Tester",
        trusted_proxies=["10.0.0.0/8"],
    )
    headers = {"X-Tester": "new", "Cookie": "tester=x"}
    assert driver.get(app, "/a", headers=headers, peer="10.1.2.3").text == "new"
    del headers["X-Tester"]
    assert driver.get(app, "/a", headers=headers, peer="10.1.2.3").text == "old"


@pytest.mark.parametrize("driver", DRIVERS)
def test_proxies_all_the_way(driver: Any):
    """Where every hop is ours, the first is the client."""
    rule = RolloutRule("r", path="/a", percent=50, by="user")
    app = driver.Middleware(
        driver.app("old"), new=driver.app("new"), rules=[rule], trusted_proxies=["10.0.0.0/8"]
    )
    for number in range(20):
        headers = {"X-Forwarded-For": f"10.2.0.{number}, 10.0.0.2"}
        expected = "new" if rule.includes(f"10.2.0.{number}") else "old"
        assert driver.get(app, "/a", headers=headers, peer="10.0.0.1").text == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("short", "ann", 1), "tester_secret must be a text of at least 16 characters"),
        (
            ("x" * 16, "ann lee", 1),
            "who must be 1 to 64 letters, digits, '_' or '-', got",
        ),
        (("x" * 16, "", 1), "who must be 1 to 64 letters"),
        (("x" * 16, 7, 1), "who must be 1 to 64 letters"),
        (("x" * 16, "ann", "1"), "expires must be seconds since the epoch, in the future, got '1'"),
        (("x" * 16, "ann", -1), "expires must be seconds since the epoch, in the future, got -1"),
        (("x" * 16, "ann", True), "in the future, got True"),
        (("x" * 16, "ann", time.time() - 1), "in the future, got 1"),
        (("x" * 16, "ann", float("inf")), "in the future, got inf"),
        (("x" * 16, "ann", float("nan")), "in the future, got nan"),
    ],
)
def test_a_wrong_tester_is_one_line(given: Any, message: str):
    """Without the secret in it."""
    with pytest.raises(ConfigError) as error:
        sign_tester(*given)
    assert message in str(error.value)


def test_users_are_remembered_for_a_while(monkeypatch: pytest.MonkeyPatch):
    """Some thousands of them, with short names; what is forgotten is found again."""
    monkeypatch.setattr(lanes, "MOST_KEYS", 10)
    rule = RolloutRule("r", path="/", percent=50, by="user", header="x-user")
    policy = RolloutPolicy([rule], server_name="web-1")
    (lane,) = policy.lanes
    lane.apps = (False, True, None)
    names = [f"user-{number}" for number in range(25)] * 2 + ["x" * 500]
    for name in names:
        request = Request(headers={"x-user": name})
        policy.enter(request)
        assert request.target is rule.includes(name)
        assert len(lane._known) <= 10
    assert "x" * 500 not in lane._known


def test_paths_are_remembered_for_a_while(monkeypatch: pytest.MonkeyPatch):
    """Those below a prefix and those that are not; what is forgotten is found again."""
    monkeypatch.setattr(policies, "MOST_PATHS", 10)
    rules = [RolloutRule("a", path="/shop/a"), RolloutRule("shop", prefix="/shop", percent=100)]
    policy = RolloutPolicy(rules, server_name="web-1")
    for lane in policy.lanes:
        lane.apps = (f"old {lane.rule.name}", f"new {lane.rule.name}", None)
    paths = [f"/shop/{number}" for number in range(25)] + [f"/{number}" for number in range(25)]
    for path in [*paths, *paths, "/shop/a", "/shop/" + "x" * 500, "/shop//a"]:
        request = Request(path=path)
        policy.enter(request)
        if path == "/shop/a":
            assert request.target == "old a"
        else:
            below = path.startswith("/shop/") and "//" not in path
            assert request.target == ("new shop" if below else None)
        assert len(policy.known) <= 11
        assert "/shop/a" in policy.known
    assert "/shop/" + "x" * 500 not in policy.known


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_remembered_path_is_still_looked_at(driver: Any):
    """How it was written, and below which mount point, may differ from one to the next."""
    rules = [RolloutRule("shop", prefix="/shop", percent=100)]
    app = driver.Middleware(driver.app("old"), new=driver.app("new"), rules=rules)
    for _ in range(2):
        assert driver.get(app, "/shop/a").text == "new"
        assert driver.get(app, "/shop/%61").text == "old"
        assert driver.get(app, "/a", root="/shop").text == "old"
        assert driver.get(app, "/shop/a", root="/x").text == "new"
        assert driver.get(app, "/x/shop/a").text == "old"
        assert driver.get(app, "/shop/%C3%BC").text == "new"
        assert driver.get(app, "/%C3%BC").text == "old"


@pytest.mark.parametrize("driver", DRIVERS)
def test_bytes_are_no_characters(driver: Any):
    """WSGI has each byte of a path as a character, which is another path's name."""
    rules = [RolloutRule("r", path="/ü".encode().decode("latin-1"), percent=100)]
    app = driver.Middleware(driver.app("old"), new=driver.app("new"), rules=rules)
    assert driver.get(app, "/%C3%BC").text == "old"
    assert driver.get(app, "/%C3%83%C2%BC").text == "new"


def test_a_policy_tells_its_shares():
    """As they are in force; a store's word for a rule that it does not have changes nothing."""
    policy = RolloutPolicy(RULES, server_name="web-1")
    assert policy.shares == {"r": Share(100)}
    policy.shares = {"q": Share(3)}
    assert policy.shares == {"r": Share(100)}
    policy.shut()
    assert policy.shares == {"r": Share(0.0)}
    assert not policy.synced


def test_a_policy_may_trip_alone():
    """It holds its rule though nobody wants to hear of it."""
    rule = RolloutRule("r", path="/a", percent=50)
    policy = RolloutPolicy([rule], server_name="w", guard=RolloutGuard(min_samples=20))
    (lane,) = policy.lanes
    lane.apply(Share(50))
    for step in range(400):
        now = 1.0 + step / 100
        lane.old.answered(200, now - 0.001, now, False, False)
        lane.new.answered(500, now - 0.001, now, False, False)
    assert lane.share == Share(0.0, held=True)


def test_an_asgi_response_that_breaks_does_not_fall_back():
    """It had begun."""

    async def breaking(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise LookupError

    app = ASGI.Middleware(ASGI.app("old"), new=breaking, rules=RULES, fallback=True)

    async def main() -> None:
        exchange = Exchange(scope("/a"))
        with pytest.raises(LookupError):
            await exchange.through(app)
        assert exchange.text == b""

    run(main())


def test_a_wsgi_app_that_is_interrupted_does_not_fall_back():
    """Ctrl-C is nobody's failure to answer."""
    new = WSGI.app("new", fails=KeyboardInterrupt())
    app = WSGI.Middleware(WSGI.app("old"), new=new, rules=RULES, fallback=True)
    with pytest.raises(KeyboardInterrupt):
        wsgi_harness.call(app, "/a")


def test_a_wsgi_body_of_plain_chunks():
    """An iterator without a close is closed by doing nothing."""

    def new(environ: Any, start_response: Any) -> Any:
        def chunks() -> Any:
            start_response("200 OK", [])
            yield b"new"

        return map(bytes, chunks())

    for fallback in (True, False):
        app = WSGI.Middleware(WSGI.app("old"), new=new, rules=RULES, fallback=fallback)
        assert wsgi_harness.call(app, "/a") == (200, b"new")


def test_what_became_due_is_done():
    """A finalizer may ask for the lock while a request counts: it is heard right after."""
    app = WSGI.Middleware(WSGI.app("old"), new=WSGI.app("new"), rules=RULES)
    section = app._section
    done = []
    section.due.append(lambda: done.append(1))
    wsgi_harness.call(app, "/a")
    assert done == [1]


def test_a_late_deadline_without_an_answer_in_wsgi():
    """An app that raises after its deadline was late, too."""

    def new(environ: Any, start_response: Any) -> Any:
        time.sleep(0.05)
        raise LookupError

    rollout = WSGI.Middleware(WSGI.app("old"), new=new, rules=RULES)
    with pytest.raises(LookupError):
        wsgi_harness.call(WSGI.Deadline(rollout, timeout=0.02), "/a")
    assert (rule_of(rollout).new.errors, rule_of(rollout).new.late) == (1, 1)
