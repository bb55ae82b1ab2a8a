"""Real traffic through real front proxies with the exported rules."""

from __future__ import annotations

import math
import shutil

import pytest

from resilience_mw.core.rollout import RolloutRule, Share
from resilience_mw.core.rollout.hashing import place
from tests.rollout.export.fronts import WRITERS, Front, fronted

KINDS = [
    pytest.param(
        kind,
        marks=pytest.mark.skipif(shutil.which(kind) is None, reason=f"{kind} is not installed"),
    )
    for kind in WRITERS
]
pytestmark = pytest.mark.parametrize("kind", KINDS)


def near(count: int, total: int, share: float) -> bool:
    """Whether a count is within five standard deviations of what a share makes of a total."""
    return abs(count - total * share) <= 5 * math.sqrt(total * share * (1 - share)) + 1


def test_a_share_of_requests(kind, tmp_path):
    """Is that of the rule, within sampling error."""
    rules = [RolloutRule("favourites", path="/item_collect.htm", percent=25, by="request")]
    with fronted(kind, rules, tmp_path) as front:
        answers = [front.ask("/item_collect.htm?page=1") for _ in range(1500)]
        assert near(answers.count("new"), 1500, 0.25)
        assert {front.ask("/") for _ in range(20)} == {"old"}


@pytest.mark.parametrize("key", ["cookie", "header"])
def test_a_share_of_users(kind, key, tmp_path):
    """The same as behind the middleware, though of other users; each sees one stack."""
    if key == "cookie":
        rule = RolloutRule("cart", path="/cart", percent=20, by="user", cookie="sid-1")
    else:
        rule = RolloutRule("cart", path="/cart", percent=20, by="user", header="X-User-Id")

    def sent(user: str) -> dict[str, str]:
        return {"Cookie": f"a=1; sid-1={user}"} if key == "cookie" else {"X_User_Id": user}

    users = [f"user-{number}" for number in range(1000)]
    with fronted(kind, [rule], tmp_path) as front:
        first = [front.ask("/cart", **sent(user)) for user in users]
        assert first[::7] == [front.ask("/cart?again", **sent(user)) for user in users[::7]]
        assert {front.ask("/cart"), front.ask("/cart", Cookie="sid-10=x; xsid-1=1")} == {"old"}
        assert front.ask("/cart", **sent("")) == "old"
    ours = sum(rule.includes(user) for user in users)
    assert near(first.count("new"), 1000, 0.2)
    assert near(ours, 1000, 0.2)


def test_raising_a_share_only_adds(kind, tmp_path):
    """As with our own hash: whoever was let in stays in."""
    rule = RolloutRule("cart", path="/cart", by="user", cookie="sid")
    let_in: list[set[int]] = []
    for step, percent in enumerate((0, 5, 30, 100)):
        folder = tmp_path / str(step)
        folder.mkdir()
        with fronted(kind, [rule], folder, {"cart": Share(percent)}) as front:
            answers = [front.ask("/cart", Cookie=f"sid={user}") for user in range(300)]
        let_in.append({user for user, answer in enumerate(answers) if answer == "new"})
    assert let_in[0] < let_in[1] < let_in[2] < let_in[3] == set(range(300))


def test_users_who_meet_one_page_first_are_others_at_the_next(kind, tmp_path):
    """The rule is part of the hash."""
    rules = [
        RolloutRule(name, path=f"/{name}", percent=50, by="user", cookie="sid")
        for name in ("a", "b")
    ]
    with fronted(kind, rules, tmp_path) as front:
        pairs = [
            (front.ask("/a", Cookie=f"sid={user}"), front.ask("/b", Cookie=f"sid={user}"))
            for user in range(200)
        ]
    assert len(set(pairs)) == 4


def test_a_rule_by_server_is_decided_when_it_is_written(kind, tmp_path):
    """With our own hash, so that exactly those servers are in that are in now."""
    rule = RolloutRule("favourites", path="/item_collect.htm", percent=30)
    inside = next(f"web-{n}" for n in range(100) if place("favourites", f"web-{n}") < 3000)
    outside = next(f"web-{n}" for n in range(100) if place("favourites", f"web-{n}") >= 3000)
    for name, expected in ((inside, "new"), (outside, "old")):
        folder = tmp_path / name
        folder.mkdir()
        with fronted(kind, [rule], folder, server_name=name) as front:
            assert {front.ask("/item_collect.htm") for _ in range(20)} == {expected}


def test_one_file_for_all_servers_draws_by_host_name(kind, tmp_path):
    """This host is in or out, as a whole."""
    rule = RolloutRule("favourites", path="/item_collect.htm", percent=50)
    with fronted(kind, [rule], tmp_path, server_name=None) as front:
        assert len({front.ask("/item_collect.htm") for _ in range(20)}) == 1


def test_a_held_rule_gets_nothing(kind, tmp_path):
    """Whatever percentage stands beside the hold."""
    rule = RolloutRule("cart", path="/cart", percent=100, by="request")
    with fronted(kind, [rule], tmp_path, {"cart": Share(0, held=True)}) as front:
        assert front.ask("/cart") == "old"


def test_the_address_of_a_client_is_a_key(kind, tmp_path):
    """One address, one stack."""
    rule = RolloutRule("cart", path="/cart", percent=50, by="user")
    with fronted(kind, [rule], tmp_path) as front:
        assert len({front.ask("/cart") for _ in range(20)}) == 1


RULES = [
    RolloutRule("post", path="/cart", methods=["POST"], percent=0, by="request"),
    RolloutRule("cart", path="/cart", percent=100, by="request"),
    RolloutRule("old-part", prefix="/shop/old", percent=0, by="request"),
    RolloutRule("beta", host="beta.shop.example", prefix="/shop", percent=0, by="request"),
    RolloutRule("shop", prefix="/shop", percent=100, by="request"),
    RolloutRule("late", path="/shop/late", percent=0, by="request"),
    RolloutRule("cafe", path='/caf\u00e9 "x"\'$1;{}', percent=100, by="request"),
    RolloutRule("dir", prefix="/dir/", percent=100, by="request"),
    RolloutRule("host", host="new.shop.example", percent=100, by="request"),
]

WHERE = [
    ("/cart", "new", {}),
    ("/cart?q=//", "new", {}),
    ("/cart/", "old", {}),
    ("/cartoon", "old", {}),
    ("/CART", "old", {}),
    ("/shop", "new", {}),
    ("/shop/", "new", {}),
    ("/shop/late", "new", {}),
    ("/shop/old", "old", {}),
    ("/shop/old/page", "old", {}),
    ("/shop/older", "new", {}),
    ("/shopping", "old", {}),
    ("/dir", "old", {}),
    ("/dir/", "new", {}),
    ("/dir/x", "new", {}),
    ("/caf%C3%A9%20%22x%22'$1;%7B%7D", "new", {}),
    ("/caf%c3%a9%20%22x%22'$1;%7b%7d", "new", {}),
    ("/shop", "old", {"Host": "beta.shop.example"}),
    ("/shop/x", "old", {"Host": "Beta.Shop.Example:8080"}),
    ("/shop/x", "new", {"Host": "alpha.shop.example"}),
    ("/anything", "new", {"Host": "new.shop.example"}),
    ("/anything", "new", {"Host": "NEW.shop.example.:80"}),
    ("/anything", "old", {"Host": "new.shop.example.evil"}),
    ("/anything", "old", {"Host": "newxshop.example"}),
    ("/cart", "new", {"Host": "new.shop.example"}),
]

TRICKS = [
    "/%63art",
    "/c%61rt",
    "//cart",
    "/./cart",
    "/x/../cart",
    "/x/%2e%2e/cart",
    "/%2e/cart",
    "/shop//x",
    "/shop/../admin",
    "/shop/%2e%2e/admin",
    "/shop/..;/admin",
    "/shop%2fx",
    "/shop/x%5cy",
    "/sho%70/x",
    "/shop/%0d%0aX:1",
]


def test_the_first_rule_that_matches_decides(kind, tmp_path):
    """Though nginx picks a location by its own order: exact, then the longest prefix."""
    with fronted(kind, RULES, tmp_path) as front:
        found = [(target, front.ask(target, **more), more) for target, _, more in WHERE]
        assert found == WHERE
        assert front.ask("/cart", "POST") == "old"
        assert front.ask("/shop", "POST") == "new"


def test_path_tricks_stay_with_the_old_stack(kind, tmp_path):
    """What the proxy and the app may read differently never reaches the new one."""
    with fronted(kind, RULES, tmp_path) as front:
        assert {target: _stack_of(front, target) for target in TRICKS} == dict.fromkeys(
            TRICKS, "old"
        )


def _stack_of(front: Front, target: str) -> str:
    told = front.told(target)
    name, asked, *_ = told.split(" ")
    assert asked == target, "the target is passed on as it came"
    return name


def test_the_stack_learns_who_asks(kind, tmp_path):
    """The address of the client is added to what was told."""
    rule = RolloutRule("cart", path="/cart", percent=100, by="request")
    with fronted(kind, [rule], tmp_path) as front:
        assert front.told("/cart") == "new /cart 127.0.0.1 None"


def test_a_websocket_is_asked_for(kind, tmp_path):
    """Of the stack that the rule says."""
    rule = RolloutRule("cart", path="/cart", percent=100, by="request")
    with fronted(kind, [rule], tmp_path) as front:
        key = {"Sec_WebSocket_Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec_WebSocket_Version": "13"}
        asked = {"Connection": "Upgrade", "Upgrade": "websocket", **key}
        assert front.told("/cart", **asked).lower() == "new /cart 127.0.0.1 websocket"


def test_no_other_protocol_is_passed_on(kind, tmp_path):
    """An upgrade to h2c would be a way around the rules."""
    with fronted(kind, [RolloutRule("cart", path="/cart")], tmp_path) as front:
        asked = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2_Settings": "AA"}
        assert front.told("/", **asked) == "old / 127.0.0.1 None"
