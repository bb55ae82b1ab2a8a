"""Keywords that a constructor does not know."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import pytest

from resilience_mw import Config, RolloutRule, asgi, wsgi
from resilience_mw.core.rollout import RolloutGuard
from resilience_mw.exceptions import ConfigError
from resilience_mw.health import Check, DiskCheck, TcpCheck, UpstreamCheck


class Mine(Check):
    """Somebody's own kind of check."""

    def __init__(self, shelf: int, **options: Any) -> None:
        super().__init__(self.ask, **options)
        self.shelf = shelf

    def ask(self) -> bool:
        """Pass."""
        return True


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Be the old one."""


URL = "http://127.0.0.1:1/"
RULE = RolloutRule("r", path="/a")


@pytest.mark.parametrize(
    ("kind", "values", "wrong", "meant"),
    [
        (UpstreamCheck, {"url": URL}, "timout", "timeout"),
        (UpstreamCheck, {"url": URL}, "expct", "expect"),
        (TcpCheck, {"host": "h", "port": 1}, "intervall", "interval"),
        (DiskCheck, {}, "min_fre", "min_free"),
        (Check, {"probe": len}, "criticl", "critical"),
        (Mine, {"shelf": 1}, "shelv", "shelf"),
        (RolloutRule, {"name": "r", "path": "/a"}, "percnt", "percent"),
        (RolloutGuard, {}, "windw", "window"),
        (asgi.RolloutMiddleware, {"app": app, "new": app, "rules": [RULE]}, "stor", "store"),
        (wsgi.RolloutMiddleware, {"app": app, "new": app, "rules": [RULE]}, "stor", "store"),
    ],
)
def test_what_was_meant_is_said(kind: Any, values: dict[str, Any], wrong: str, meant: str):
    """In the words of all other options."""
    with pytest.raises(ConfigError) as caught:
        kind(**values, **{wrong: 1})
    expected = f"{kind.__name__}: unknown option {wrong}; did you mean {meant}?"
    assert (str(caught.value), caught.value.meant) == (expected, meant)
    assert isinstance(caught.value, TypeError)


def test_what_is_like_nothing_lists_what_there_is():
    """Once each."""
    with pytest.raises(ConfigError) as caught:
        RolloutRule("r", foo=1)  # type: ignore[call-arg]
    assert str(caught.value) == (
        "RolloutRule: unknown option foo; there are name, path, prefix, host, methods, percent, "
        "by, cookie, header"
    )


def test_nothing_else_changes():
    """Signatures, copies, and missing arguments."""
    assert list(inspect.signature(RolloutRule).parameters)[:2] == ["name", "path"]
    assert pickle.loads(pickle.dumps(RULE)) == RULE
    with pytest.raises(TypeError):
        UpstreamCheck()  # type: ignore[call-arg]


def test_sections_without_names():
    """A mapping has a reader of its own."""
    with pytest.raises(ConfigError, match=r"^Config takes its sections by name .*, got \{"):
        Config({"limit": {}})  # type: ignore[call-arg, arg-type]
