"""What can be written down for a front proxy."""

from __future__ import annotations

import pytest

from resilience_mw import ConfigError
from resilience_mw.core.rollout import RolloutRule, Share
from resilience_mw.rollout.export import Plan, nginx
from resilience_mw.rollout.export.plan import address, listener


def plan(*rules: RolloutRule, **shares: Share) -> Plan:
    return Plan(rules, shares, "127.0.0.1:7001", "[::1]:6001", "web-1")


@pytest.mark.parametrize(
    "rule",
    [
        RolloutRule("a", path="/a//b"),
        RolloutRule("a", path="/a/../b"),
        RolloutRule("a", path="/a\\b"),
        RolloutRule("a", path="/a\nb"),
        RolloutRule("a", path="/a", by="user", header="X_User"),
    ],
    ids=lambda rule: repr(rule.path) + str(rule.header),
)
def test_what_a_proxy_cannot_match_is_told(rule):
    """Rather than written down as something that never matches, or as another directive."""
    with pytest.raises(ConfigError, match=r"^rule a: a front proxy .* got "):
        plan(rule)


def test_a_store_knows_better_than_the_code():
    """Its share counts, and a hold counts for 0."""
    rule = RolloutRule("a", path="/a", percent=10, by="request")
    assert plan(rule).places(rule) == 1000
    assert plan(rule, a=Share(0.01)).places(rule) == 1
    assert plan(rule, a=Share(50.0, held=True)).places(rule) == 0
    assert "(held at 0 by the guard)" in plan(rule, a=Share(0.0, held=True)).remarks(rule)[0]


def test_rules_whose_names_become_the_same_variable_are_kept_apart():
    """nginx's variables have fewer signs than names have."""
    rules = [
        RolloutRule(name, path=f"/{name}", percent=10, by="request") for name in ("a.b", "a-b")
    ]
    lines = nginx(plan(*rules))
    assert 'split_clients "a.b $request_id" $resilience_a_b {' in lines
    assert 'split_clients "a-b $request_id" $resilience_a_b_ {' in lines


def test_addresses():
    """With or without a scheme; names, IPv4 and IPv6."""
    assert address("old", "http://shop.internal:7001/") == "shop.internal:7001"
    assert address("old", "[::1]:07") == "[::1]:7"
    assert listener("8080") == "8080"
    assert listener("0.0.0.0:80") == "0.0.0.0:80"
    for wrong in ("", ":1", "a", "a:", "a:x", "a:65536", "a b:1", "[x]:1", "a:1;b:2", "a:\u0661"):
        with pytest.raises(ConfigError):
            address("old", wrong)
