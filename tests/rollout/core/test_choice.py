"""Which of the two stacks answers, under both protocols."""

from __future__ import annotations

from typing import Any

import pytest

from resilience_mw import ConfigError, RolloutRule
from resilience_mw.core import Share
from tests.asgi.harness import Exchange, run, scope

from .drivers import ASGI, DRIVERS, WSGI, rule_of

pytestmark = pytest.mark.parametrize("driver", DRIVERS)


def both(driver: Any, *rules: RolloutRule, **options: Any) -> Any:
    """Two stacks that say which they are."""
    return driver.Middleware(driver.app("old"), new=driver.app("new"), rules=rules, **options)


def test_the_rest_stays(driver: Any):
    """What no rule is about is the old app's, and is not even counted."""
    app = both(driver, RolloutRule("r", path="/a", percent=100))
    assert driver.get(app, "/a").text == "new"
    assert driver.get(app, "/b").text == "old"
    assert driver.get(app, "/a/").text == "old"
    assert (rule_of(app).old.requests, rule_of(app).new.requests) == (0, 1)


def test_the_first_rule_that_matches_decides(driver: Any):
    """Also if it says no, and whatever kinds the rules are of."""
    app = both(
        driver,
        RolloutRule("off", path="/shop/a", percent=0),
        RolloutRule("on", prefix="/shop", percent=100),
        RolloutRule("late", path="/shop/b", percent=0),
        RolloutRule("host", host="new.example.org", percent=100),
    )
    assert driver.get(app, "/shop/a").text == "old"
    assert driver.get(app, "/shop/b").text == "new"
    assert driver.get(app, "/shop/c").text == "new"
    assert driver.get(app, "/other").text == "old"
    assert driver.get(app, "/other", headers={"Host": "NEW.example.org:81"}).text == "new"


def test_methods(driver: Any):
    """A rule for some methods leaves the others to the next rule."""
    app = both(driver, RolloutRule("r", path="/a", percent=100, methods=("GET", "HEAD")))
    assert driver.get(app, "/a").text == "new"
    assert driver.get(app, "/a", method="POST").text == "old"


def test_a_server_is_in_or_out(driver: Any):
    """By the name it is given, of which 2247 is the place."""
    rule = RolloutRule("favourites", path="/a", percent=22.48)
    inside = both(driver, rule, server_name="web-1")
    outside = both(driver, RolloutRule("favourites", path="/a", percent=22.47), server_name="web-1")
    assert {driver.get(inside, "/a").text for _ in range(20)} == {"new"}
    assert {driver.get(outside, "/a").text for _ in range(20)} == {"old"}
    assert rule_of(inside).included
    assert not rule_of(outside).included


def test_a_server_has_its_hosts_name(driver: Any, monkeypatch: pytest.MonkeyPatch):
    """Unless it is given one."""
    monkeypatch.setattr("socket.gethostname", lambda: "web-1")
    app = both(driver, RolloutRule("favourites", path="/a", percent=22.48))
    assert app.snapshot().policies[0].server_name == "web-1"
    assert driver.get(app, "/a").text == "new"


def test_users_by_cookie_see_one_stack(driver: Any):
    """About the share of them is in, and each always gets the same."""
    app = both(driver, RolloutRule("r", path="/a", percent=30, by="user", cookie="session"))
    texts = {}
    for user in range(300):
        cookies = {"Cookie": f"theme=dark; session=u{user}; lang=ja"}
        texts[user] = {driver.get(app, "/a", headers=cookies).text for _ in range(2)}
    assert all(len(seen) == 1 for seen in texts.values())
    assert 50 < sum(seen == {"new"} for seen in texts.values()) < 130


def test_users_by_header_agree_with_the_hash(driver: Any):
    """The same users as `RolloutRule.includes` says, before and after a change."""
    rule = RolloutRule("r", path="/a", percent=30, by="user", header="X-User")
    app = both(driver, rule)
    for percent in (30, 60, 10):
        app.policies[0].shares = {"r": Share(percent)}
        for user in ("ann", "bob", "eve", "ü"):
            expected = "new" if rule.includes(user, percent) else "old"
            assert driver.get(app, "/a", headers={"X-User": user}).text == expected


def test_cookies_in_pieces_name_the_same_user(driver: Any):
    """As HTTP/2 clients send them; WSGI servers join the pieces with commas."""
    rule = RolloutRule("r", path="/a", percent=50, by="user", cookie="session")
    app = both(driver, rule)
    for user in range(40):
        pieces = ["theme=dark", f"session=u{user}", "lang=ja"]
        expected = "new" if rule.includes(f"u{user}") else "old"
        if driver is ASGI:
            facts = scope("/a", headers=[(b"cookie", piece.encode()) for piece in pieces])
            assert run(Exchange(facts).through(app)).text.decode() == expected
        for joint in (",", ", ", "; "):
            headers = {"Cookie": joint.join(pieces)}
            assert driver.get(app, "/a", headers=headers).text == expected


@pytest.mark.parametrize("how", [{"cookie": "session"}, {"header": "X-User"}])
def test_an_unknown_user_stays_until_the_end(driver: Any, how: Any):
    """Who cannot be told from others does not flip: old up to 99.99 %, new at 100."""
    app = both(driver, RolloutRule("r", path="/a", percent=99.99, by="user", **how))
    assert {driver.get(app, "/a").text for _ in range(30)} == {"old"}
    empty = {"Cookie": "session=; sessions=1", "X-User": ""}
    assert driver.get(app, "/a", headers=empty).text == "old"
    app.policies[0].shares = {"r": Share(100)}
    assert driver.get(app, "/a").text == "new"


def test_users_by_address(driver: Any):
    """Without a cookie or header it is the client's address."""
    rule = RolloutRule("r", path="/a", percent=50, by="user")
    app = both(driver, rule)
    for number in range(20):
        peer = f"198.51.100.{number}"
        expected = "new" if rule.includes(peer) else "old"
        assert driver.get(app, "/a", peer=peer).text == expected


@pytest.mark.parametrize("trusted", [(), ("10.0.0.1",)])
def test_an_address_has_one_form(driver: Any, trusted: Any):
    """However a server's socket writes it: all servers must agree."""
    rule = RolloutRule("r", path="/a", percent=50, by="user")
    app = both(driver, rule, trusted_proxies=trusted)
    for number in range(20):
        expected = "new" if rule.includes(f"198.51.100.{number}") else "old"
        assert driver.get(app, "/a", peer=f"::ffff:198.51.100.{number}").text == expected
        expected = "new" if rule.includes(f"2001:db8::{number:x}") else "old"
        assert driver.get(app, "/a", peer=f"2001:DB8:0::{number:x}").text == expected


def test_requests_by_chance(driver: Any):
    """Each is drawn anew."""
    app = both(driver, RolloutRule("r", path="/a", percent=50, by="request"))
    assert {driver.get(app, "/a").text for _ in range(60)} == {"old", "new"}


def test_below_a_mount_point(driver: Any):
    """A rule's path is what the app sees."""
    app = both(driver, RolloutRule("r", path="/a", percent=100))
    assert driver.get(app, "/a", root="/shop").text == "new"
    assert driver.get(app, "/b", root="/a").text == "old"


def test_a_path_that_is_no_ascii(driver: Any):
    """Browsers escape it, and it is compared decoded."""
    app = both(driver, RolloutRule("r", path="/お気に入り", percent=100))
    assert driver.get(app, "/%E3%81%8A%E6%B0%97%E3%81%AB%E5%85%A5%E3%82%8A").text == "new"
    assert driver.get(app, "/%E3%81%8A").text == "old"


def test_the_variant_is_named(driver: Any):
    """In a header of that name, of which there is no other."""
    stack = driver.app("x", headers=[("X-Stack", "forged"), ("X-Other", "kept")])
    rules = [RolloutRule("r", path="/a", percent=100), RolloutRule("q", path="/b")]
    app = driver.Middleware(stack, new=stack, rules=rules, variant_header="X-Stack")
    assert driver.get(app, "/a").headers == {"x-stack": "new", "x-other": "kept"}
    assert driver.get(app, "/b").headers == {"x-stack": "old", "x-other": "kept"}
    assert driver.get(app, "/c").headers == {"x-stack": "forged", "x-other": "kept"}


def test_shares_change_at_once(driver: Any):
    """A share that is set is in force for the next request; a held rule is at 0."""
    app = both(driver, RolloutRule("r", path="/a"), RolloutRule("by-user", path="/b", by="user"))
    policy = app.policies[0]
    for shares, text in (
        ({}, "old"),
        ({"r": Share(100), "by-user": Share(100), "another": Share(3)}, "new"),
        ({"r": Share(100, held=True), "by-user": Share(100, held=True)}, "old"),
        ({"r": Share(100), "by-user": Share(100)}, "new"),
        ({}, "old"),
    ):
        policy.shares = shares
        assert driver.get(app, "/a").text == driver.get(app, "/b").text == text
        assert rule_of(app).held is (shares.get("r", Share(0)).held)
        assert rule_of(app).percent == (100 if text == "new" else 0)


def test_apps_by_name(driver: Any):
    """The new stack may be an import string."""
    here = "tests.rollout.core.named"
    name = f"{here}:{'asgi' if driver is ASGI else 'wsgi'}_app"
    rules = [RolloutRule("r", path="/a", percent=100)]
    app = driver.Middleware(driver.app("old"), new=name, rules=rules)
    assert driver.get(app, "/a").text == "named"


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"new": 7}, 'new must be an app, "module:app" or "http://host:port", got 7'),
    ({"new": "nothing"}, 'new must be an app, "module:app" or "http://host:port", got \'nothing\''),
    ({"new": "no_such:app"}, "new could not be loaded from no_such:app: ModuleNotFoundError"),
    ({"new": "tests.rollout:app"}, "new could not be loaded from tests.rollout:app: AttributeErr"),
    ({"rules": []}, "rules must be a list of RolloutRule, got []"),
    ({"rules": "r"}, "rules must be a list of RolloutRule, got 'r'"),
    ({"rules": ["r"]}, "rules must be a list of RolloutRule, got 'r' in it"),
    ({"server_name": " "}, "server_name must be a text that is not empty, got ' '"),
    ({"guard": 3}, "guard must be True, False or a RolloutGuard, got 3"),
    ({"fallback": "yes"}, "fallback must be True or False, got 'yes'"),
    ({"variant_header": "a b"}, "variant_header must be a name without blanks or separators"),
    ({"variant_header": "a\r\nb: c"}, "variant_header must be a name without blanks"),
    ({"tester_cookie": "t"}, "tester_secret must be a text of at least 16 characters"),
    (
        {"tester_secret": "x" * 16},
        "tester_cookie must be the name of the cookie that",
    ),
    ({"tester_header": "t"}, "trusted_proxies must name whose tester_header counts, got none"),
    ({"trusted_proxies": "10.0.0.0/8"}, "trusted_proxies must be a list of networks, got"),
    ({"trusted_proxies": b"10.0.0.1"}, "trusted_proxies must be a list of networks, got b'10"),
    ({"trusted_proxies": [10]}, "trusted_proxies must be addresses, networks, '*' or 'unix', got"),
    ({"trusted_proxies": ["x"]}, "trusted_proxies must be addresses, networks, '*' or 'unix', got"),
    ({"store": "mysql://"}, "store must be file:PATH"),
]


@pytest.mark.parametrize(("options", "message"), WRONG, ids=[str(o) for o, _ in WRONG])
def test_a_wrong_option_is_one_line(driver: Any, options: dict[str, Any], message: str):
    """It names the option, what is expected and the value, and no secret."""
    given: dict[str, Any] = {
        "new": driver.app("new"),
        "rules": [RolloutRule("r", path="/a")],
        **options,
    }
    if "tester_cookie" in options:
        given["tester_secret"] = "short"
    with pytest.raises(ConfigError) as error:
        driver.Middleware(driver.app("old"), **given)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert "short" not in str(error.value)


def test_two_rules_of_one_name(driver: Any):
    """A store could not tell them apart; nor one that differs in case."""
    with pytest.raises(ConfigError, match="distinct names, got 'R' twice"):
        both(driver, RolloutRule("r", path="/a"), RolloutRule("R", path="/b"))


def test_stacks_of_two_kinds(driver: Any):
    """A server calls both in the same way."""
    other = WSGI if driver is ASGI else ASGI
    rules = [RolloutRule("r", path="/a")]
    kind = "ASGI" if driver is ASGI else "WSGI"
    with pytest.raises(ConfigError, match=f"new must speak {kind} as the old app does, got"):
        driver.Middleware(driver.app("old"), new=other.app("new"), rules=rules)


def test_the_old_app_is_one_of_the_same_protocol(driver: Any):
    """What is none is found at the start, not by the first request."""
    other = WSGI if driver is ASGI else ASGI
    for app, message in ((7, "app must be an ASGI or WSGI callable, got 7"), (None, "got None")):
        with pytest.raises(ConfigError, match=message):
            driver.Middleware(app, new=driver.app("new"), rules=[RolloutRule("r", path="/a")])
    with pytest.raises(ConfigError, match=f"app must speak {driver.__name__}, got "):
        driver.Middleware(
            other.app("old"), new=driver.app("new"), rules=[RolloutRule("r", path="/a")]
        )
