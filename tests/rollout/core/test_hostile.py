"""Input that was made to reach the wrong stack, or to break the one that reads it."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resilience_mw import RolloutRule
from resilience_mw.core import RolloutPolicy, Share
from resilience_mw.rollout import sign_tester
from resilience_mw.rollout.testers import _signature
from tests.core.requests import Request

from .drivers import DRIVERS, rule_of

SECRET = "correct horse battery"
PROXY = "10.0.0.1"

TRICKS = [
    "//item.htm",
    "/./item.htm",
    "/x/../item.htm",
    "/item.htm/",
    "/item.htm/.",
    "/ITEM.htm",
    "/item.HTM",
    "/item%2ehtm",
    "/%69tem.htm",
    "/item%252ehtm",
    "/%2e/item.htm",
    "/%2fitem.htm",
    "/item.htm%00",
    "/item.htm;x=1",
    "/item.htm%20",
    "\\item.htm",
    "/item.htm%3f",
    "/%c0%afitem.htm",
]

PREFIX_TRICKS = [
    "/new/../admin",
    "/new/%2e%2e/admin",
    "/new/%2E%2E%2Fadmin",
    "/new/..%2fadmin",
    "/new%2f..%2fadmin",
    "/new/..;/admin",
    "/new/%252e%252e/admin",
    "/new//admin",
    "/new/..%5cadmin",
    "/new/a%00b",
    "/new/%u002e%u002e/admin",
    "/new/%zz",
    "/new/%",
    "/new/%c0%ae%c0%ae/admin",
    "/new/%ff",
    "/newer",
    "/NEW/a",
    "/%6eew/a",
    "//new/a",
]


def with_testers(driver: Any, **rule: Any) -> Any:
    """Two stacks, and testers by header from one proxy or by signed cookie."""
    rule = {"path": "/a", **rule}
    return driver.Middleware(
        driver.app("old"),
        new=driver.app("new"),
        rules=[RolloutRule("r", **rule), RolloutRule("q", path="/q")],
        tester_header="X-Tester",
        tester_cookie="tester",
        tester_secret=SECRET,
        trusted_proxies=[PROXY],
    )


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("target", TRICKS)
def test_another_spelling_of_a_path_stays(driver: Any, target: str):
    """The new stack gets the one path as everybody writes it."""
    rules = [RolloutRule("r", path="/item.htm", percent=100)]
    app = driver.Middleware(driver.app("old"), new=driver.app("new"), rules=rules)
    assert driver.get(app, "/item.htm").text == "new"
    assert driver.get(app, target).text == "old"


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("target", PREFIX_TRICKS)
def test_no_way_out_of_a_prefix(driver: Any, target: str):
    """What leads out of it, in anybody's reading, is not the new stack's."""
    rules = [RolloutRule("r", prefix="/new", percent=100)]
    app = driver.Middleware(driver.app("old"), new=driver.app("new"), rules=rules)
    assert driver.get(app, "/new/%E3%81%82%20b").text == "new"
    assert driver.get(app, target).text == "old"


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_mount_point_is_no_path_below_it(driver: Any):
    """Though it may be spelled as one that a rule is about."""
    rules = [RolloutRule("r", path="/new", percent=100), RolloutRule("p", prefix="/pre")]
    app = driver.Middleware(driver.app("old"), new=driver.app("new"), rules=rules)
    app.policies[0].shares = {"r": Share(100), "p": Share(100)}
    for root in ("/new", "/pre"):
        assert driver.get(app, "", root=root).text == "old"
        assert driver.get(app, root, root="/x").text == "new"


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_testers_header_counts_from_a_proxy_only(driver: Any):
    """From anybody else it is a header like any other, also beside a forged address."""
    app = with_testers(driver)
    wish = {"X-Tester": "new"}
    assert driver.get(app, "/a", headers=wish, peer=PROXY).text == "new"
    assert driver.get(app, "/a", headers=wish).text == "old"
    for forged in ({"X-Forwarded-For": PROXY}, {"Forwarded": f"for={PROXY}"}, {"X-Real-Ip": PROXY}):
        assert driver.get(app, "/a", headers={**wish, **forged}).text == "old"


@pytest.mark.parametrize("driver", DRIVERS)
def test_an_address_out_of_a_header_is_no_proxys(driver: Any):
    """Where no socket is in reach, a server that believes everybody may have it from there."""
    app, wish = with_testers(driver), {"X-Tester": "new"}
    for header, value, text in (
        ("X-Forwarded-For", "198.51.100.7, 10.0.0.10", "new"),
        ("X-Forwarded-For", f"198.51.100.7,{PROXY}:80", "old"),
        ("X-Forwarded-For", f"::ffff:{PROXY}", "old"),
        ("Forwarded", f'proto=https;for="{PROXY}"', "old"),
        ("X-Real-Ip", PROXY, "old"),
    ):
        assert driver.get(app, "/a", headers={**wish, header: value}, peer=PROXY).text == text


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize(
    ("wish", "text"),
    [("r", "new"), ("q, R", "new"), ("1", "new"), ("q", "old"), ("", "old"), ("x" * 9000, "old")],
)
def test_a_proxy_may_name_rules(driver: Any, wish: str, text: str):
    """It lets testers into those, and what is no name lets nobody in."""
    app = with_testers(driver)
    assert driver.get(app, "/a", headers={"X-Tester": wish}, peer=PROXY).text == text


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_tester_may_ask_for_the_old_stack(driver: Any):
    """To compare the two, at 100 % as well."""
    app = with_testers(driver, percent=100)
    assert driver.get(app, "/a", headers={"X-Tester": "old"}, peer=PROXY).text == "old"
    assert driver.get(app, "/a", peer=PROXY).text == "new"


def _signed(who: str, until: int) -> str:
    """Sign what `sign_tester` refuses: the past."""
    return f"{who}.{until}.{_signature(SECRET, who, str(until))}"


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_testers_cookie_has_to_be_signed(driver: Any):
    """By the secret, for its very content, and only until it expires."""
    app = with_testers(driver)
    good = sign_tester(SECRET, "ann", time.time() + 60)
    who, until, signature = good.split(".")
    assert driver.get(app, "/a", headers={"Cookie": f"x=1; tester={good}"}).text == "new"
    forged = [
        sign_tester("another secret, as long", "ann", time.time() + 60),
        _signed("ann", int(time.time()) - 1),
        f"eve.{until}.{signature}",
        f"{who}.{int(until) + 1}.{signature}",
        f"{who}.{until}.{signature[:-1]}",
        f"{who}.{until}.",
        f"{who}.{until}.ü",
        f"{who}.-1.{signature}",
        "..",
        "",
        "." * 5000,
        "1",
    ]
    for token in forged:
        assert driver.get(app, "/a", headers={"Cookie": f"tester={token}"}).text == "old", token


@pytest.mark.parametrize("driver", DRIVERS)
def test_testers_are_no_sample(driver: Any):
    """They are counted apart: who looks for faults finds more."""
    app = with_testers(driver)
    driver.get(app, "/a", headers={"X-Tester": "new"}, peer=PROXY)
    rule = rule_of(app)
    assert (rule.old.requests, rule.new.requests, rule.testers.requests) == (0, 0, 1)


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_forged_address_chooses_nothing(driver: Any):
    """`X-Forwarded-For` counts from a proxy, and from the right."""
    rule = RolloutRule("r", path="/a", percent=50, by="user")
    app = driver.Middleware(
        driver.app("old"), new=driver.app("new"), rules=[rule], trusted_proxies=[PROXY, "fd00::/8"]
    )
    names = [f"198.51.100.{number}" for number in range(256)]
    inside = next(name for name in names if rule.includes(name))
    outside = next(name for name in names if not rule.includes(name))

    def text(peer: str, *forwarded: str) -> str:
        headers = {"X-Forwarded-For": ", ".join(forwarded)} if forwarded else {}
        answer: str = driver.get(app, "/a", headers=headers, peer=peer).text
        return answer

    assert text(outside, inside) == "old"
    assert text(PROXY, outside) == "old"
    assert text(PROXY, inside) == "new"
    assert text(PROXY, inside, outside) == "old"
    assert text(PROXY, outside, inside, PROXY) == "new"
    assert text(PROXY, outside, f"[fd00::1]:80, {inside}:4711", "fd00::2") == "new"
    assert text(PROXY, outside, f"::ffff:{inside}") == "new"
    # What is no address says nothing: the last hop that is one counts.
    for junk in ("unknown", "", "x" * 9000, "-1", "999.1.1.1"):
        assert text(PROXY, inside, junk) == ("new" if rule.includes(PROXY) else "old")


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize(
    "cookies",
    [
        "a" * 100_000,
        "session=" + "b" * 100_000,
        ";" * 20_000,
        "=;=;session",
        "session",
        "\x00",
        "ÿ",
    ],
    ids=["long", "long value", "empty pairs", "nameless", "no value", "zero", "latin"],
)
def test_cookies_of_all_kinds(driver: Any, cookies: str):
    """Whoever sends them is unknown, quickly."""
    rules = [RolloutRule("r", path="/a", percent=99.99, by="user", cookie="session")]
    app = driver.Middleware(driver.app("old"), new=driver.app("new"), rules=rules)
    assert driver.get(app, "/a", headers={"Cookie": cookies}).text == "old"


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("host", ["", "a,b", "example.org@evil", "ÿ", "[", ":::", "a" * 9000])
def test_hosts_of_all_kinds(driver: Any, host: str):
    """Match no rule."""
    rules = [RolloutRule("r", host="example.org", percent=100)]
    app = driver.Middleware(driver.app("old"), new=driver.app("new"), rules=rules)
    assert driver.get(app, "/a", headers={"Host": host}).text == "old"
    assert driver.get(app, "/a", headers={"Host": "example.org"}).text == "new"


text = st.text(max_size=60)


@given(path=text, method=text, headers=st.dictionaries(st.sampled_from(["host", "cookie"]), text))
def test_nothing_breaks_a_policy(path: str, method: str, headers: dict[str, str]):
    """Any text anywhere gets one of the two apps, or none."""
    policy = RolloutPolicy(
        [
            RolloutRule("a", path="/a", methods=("GET",), percent=50, by="user", cookie="s"),
            RolloutRule("b", prefix="/b", percent=50, by="request"),
            RolloutRule("c", host="example.org", percent=50, by="user", header="x-user"),
        ],
        server_name="web-1",
    )
    for lane in policy.lanes:
        lane.apps = ("old", "new", "tester")
    request = Request(path=path, method=method, headers=headers)
    policy.enter(request)
    assert request.target in (None, "old", "new")
