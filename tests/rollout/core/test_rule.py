"""What a rule is about, and what is wrong with one."""

from __future__ import annotations

from typing import Any

import pytest

from resilience_mw import ConfigError, RolloutRule
from resilience_mw.core.rollout.rule import host_name

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"name": ""}, "RolloutRule name must be 1 to 64 letters"),
    ({"name": "a b"}, "RolloutRule name must be 1 to 64 letters"),
    ({"name": "x" * 65}, "RolloutRule name must be 1 to 64 letters"),
    ({"name": 7}, "RolloutRule name must be 1 to 64 letters"),
    ({"path": None}, "RolloutRule r: path or prefix or host must be given, got None"),
    ({"path": "cart"}, "RolloutRule r: path must begin with '/', got 'cart'"),
    ({"path": 7}, "RolloutRule r: path must begin with '/', got 7"),
    ({"path": "/caf%c3%a9"}, "RolloutRule r: path must be decoded, '/café' instead of"),
    ({"path": None, "prefix": "/a%20b"}, "RolloutRule r: prefix must be decoded"),
    ({"path": "/a?b"}, "RolloutRule r: path must be a path without query and fragment"),
    ({"prefix": "/a"}, "RolloutRule r: prefix must not be beside path, got '/a'"),
    ({"path": None, "prefix": "/a/../b"}, "prefix must have no empty or dotted segment"),
    ({"path": None, "prefix": "//a"}, "prefix must have no empty or dotted segment"),
    ({"host": "a:80"}, "RolloutRule r: host must be a host name without a port, got 'a:80'"),
    ({"host": "."}, "RolloutRule r: host must be a host name without a port, got '.'"),
    ({"host": 7}, "RolloutRule r: host must be a host name without a port, got 7"),
    ({"methods": "GET"}, "RolloutRule r: methods must be method names such as ('GET', 'HEAD')"),
    ({"methods": ["GET POST"]}, "RolloutRule r: methods must be method names"),
    ({"methods": 7}, "RolloutRule r: methods must be method names"),
    ({"percent": -1}, "RolloutRule r: percent must be 0 to 100 in steps of 0.01, got -1"),
    ({"percent": 100.01}, "percent must be 0 to 100 in steps of 0.01, got 100.01"),
    ({"percent": 0.005}, "percent must be 0 to 100 in steps of 0.01, got 0.005"),
    ({"percent": True}, "percent must be 0 to 100 in steps of 0.01, got True"),
    ({"percent": float("nan")}, "percent must be 0 to 100 in steps of 0.01, got nan"),
    ({"percent": "2"}, "percent must be 0 to 100 in steps of 0.01, got '2'"),
    ({"by": "group"}, 'RolloutRule r: by must be "server", "user" or "request", got \'group\''),
    ({"cookie": "s"}, "RolloutRule r: cookie needs by=\"user\", got 's'"),
    ({"by": "user", "cookie": "a b"}, "cookie must be a name without blanks or separators"),
    ({"by": "user", "header": ""}, "header must be a name without blanks or separators"),
    ({"by": "user", "cookie": "a", "header": "b"}, "header must not be beside cookie, got 'b'"),
]


@pytest.mark.parametrize(("change", "message"), WRONG, ids=[str(c) for c, _ in WRONG])
def test_a_wrong_rule_is_one_line(change: dict[str, Any], message: str):
    """It names the rule, the option, what is expected and the value."""
    given: dict[str, Any] = {"name": "r", "path": "/a", **change}
    name = given.pop("name")
    with pytest.raises(ConfigError) as error:
        RolloutRule(name, **given)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "path", ["/item", "/ITEM.htm", "/item.htm/", "//item.htm", "/x/../item.htm"]
)
def test_a_path_is_exact(path: str):
    """Nothing but the very path."""
    rule = RolloutRule("r", path="/item.htm")
    assert rule.matches("/item.htm")
    assert not rule.matches(path)


@pytest.mark.parametrize(
    ("prefix", "path", "about"),
    [
        ("/shop", "/shop", True),
        ("/shop", "/shop/a/b", True),
        ("/shop", "/shopping", False),
        ("/shop", "/Shop/a", False),
        ("/shop/", "/shop/a", True),
        ("/shop/", "/shop", False),
        ("/", "/anything", True),
        ("/shop", "/shop//a", False),
        ("/shop", "/shop/../admin", False),
        ("/shop", "/shop/..", False),
        ("/shop", "/shop/./a", False),
        ("/shop", "/shop/..;x/admin", False),
        ("/shop", "/shop\\..\\admin", False),
        ("/shop", "/shop/%2e%2E/admin", False),
        ("/shop", "/shop/a\x00b", False),
        ("/shop", "/shop/...", True),
        ("/shop", "/shop/.well-known", True),
        ("/shop", "/shop/a..b", True),
    ],
)
def test_a_prefix_is_whole_segments(prefix: str, path: str, about: bool):
    """And a path that leads elsewhere, in anybody's reading, is not below it."""
    assert RolloutRule("r", prefix=prefix).matches(path) is about


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("Shop.Example.org", "shop.example.org"),
        ("shop.example.org:8080", "shop.example.org"),
        ("shop.example.org.", "shop.example.org"),
        ("shop.example.org.:80", "shop.example.org"),
        ("[::1]:80", "[::1]"),
        ("[::1]", "[::1]"),
        ("::1", "::1"),
        ("a:b", "a:b"),
        ("a,b", "a,b"),
        ("", ""),
        (None, ""),
    ],
)
def test_a_host_is_compared_without_case_and_port(header: str | None, name: str):
    """As browsers and proxies send it."""
    assert host_name(header) == name


def test_a_host_may_stand_beside_a_path():
    """Then both must be right, and a method if there is one."""
    rule = RolloutRule("r", path="/a", host="Shop.example.org", methods=["get"])
    assert rule.matches("/a", "shop.example.org:80", "GET")
    assert not rule.matches("/a", "other.example.org", "GET")
    assert not rule.matches("/a", None, "GET")
    assert not rule.matches("/b", "shop.example.org", "GET")
    assert not rule.matches("/a", "shop.example.org", "POST")


def test_a_host_alone_is_about_every_straight_path():
    """Tricks in the path leave it at once."""
    rule = RolloutRule("r", host="new.example.org")
    assert rule.matches("/anything", "new.example.org")
    assert not rule.matches("/any//thing", "new.example.org")


def test_a_rule_is_a_value():
    """Frozen, comparable, and fit for a set."""
    rule = RolloutRule("r", path="/a", methods={"GET"}, percent=2)
    assert rule == RolloutRule("r", path="/a", methods=("get",), percent=2)
    assert len({rule, RolloutRule("r", path="/a", methods=["GET"], percent=2)}) == 1
    with pytest.raises(AttributeError):
        rule.percent = 50  # type: ignore[misc]
