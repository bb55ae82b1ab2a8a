"""Mistakes in the options of a roll-out, and the word that helps."""

from __future__ import annotations

import re
from typing import Any

import pytest

from resilience_mw import ConfigError, RolloutRule

from .drivers import DRIVERS

RULE = RolloutRule("r", path="/a", percent=2)


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize(
    ("new", "message"),
    [
        ("127.0.0.1:6001", "got '127.0.0.1:6001'; did you mean 'http://127.0.0.1:6001'?"),
        ("localhost:6001", "got 'localhost:6001'; did you mean 'http://localhost:6001'?"),
        ("new-shop.lan:6001", "did you mean 'http://new-shop.lan:6001'?"),
        ("[::1]:6001", "did you mean 'http://[::1]:6001'?"),
        ("ftp://h:1", '"module:app" or "http://host:port", got \'ftp://h:1\''),
        ("http://h/base", "new must be http(s)://host:port without a path"),
        ("http://h:port", "new must be http(s)://host:port, got 'http://h:port'"),
        ("http://u:p4ssword@h", "new must be http(s)://host:port without a path"),
    ],
)
def test_a_new_stack_that_is_nowhere(driver: Any, new: str, message: str):
    """The option is called as it was given, and an address without a scheme is known as one."""
    with pytest.raises(ConfigError, match=r"^new must be ") as error:
        driver.Middleware(driver.app("old"), new=new, rules=[RULE])
    assert message in str(error.value)
    assert "p4ssword" not in str(error.value)


@pytest.mark.parametrize("percent", [101, -1, float("nan"), 0.001, "2", True])
def test_a_share_that_is_none(percent: Any):
    """Asked beforehand who is in, it is refused as in a rule."""
    told = f"RolloutRule r: percent must be 0 to 100 in steps of 0.01, got {percent!r}"
    with pytest.raises(ConfigError, match=re.escape(told)):
        RULE.includes("web-1", percent)


def test_a_key_that_is_none():
    """What names a server or user is a text."""
    with pytest.raises(ConfigError, match="RolloutRule r: key must be a text, got 7"):
        RULE.includes(7)  # type: ignore[arg-type]


def test_a_prefix_with_a_slash_at_its_end():
    """It is about what is below, and not about the directory's name alone."""
    rule = RolloutRule("r", prefix="/u/")
    assert rule.matches("/u/x")
    assert rule.matches("/u/")
    assert not rule.matches("/u")
    assert RolloutRule("r", prefix="/u").matches("/u")
