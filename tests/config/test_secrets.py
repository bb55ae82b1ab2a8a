"""Passwords in URLs are shown nowhere."""

from __future__ import annotations

import pytest

from resilience_mw import Config, Health
from resilience_mw.config import wording
from resilience_mw.exceptions import ConfigError
from resilience_mw.health import from_spec


@pytest.mark.parametrize(
    "text",
    [
        "http://user:hunter2@host:port/",
        "https://u:hunter2@:7/",
        "postgres://u:hunter2@db/shop",
        "rediss://:hunter2/with/slashes@cache:port/0",
        "redis://:hunter2@and@more@cache:port",
        "amqps://user:" + "x" * 70 + "hunter2" + "y" * 500 + "@host",
    ],
)
def test_errors_do_not_show_them(text: str):
    """Whoever logs the error, or prints it at the start, logs no password."""
    with pytest.raises(ConfigError) as one:
        from_spec(text)
    assert "hunter2" not in str(one.value)
    with pytest.raises(ConfigError) as two:
        Health(checks={"a": text, "b": 5})
    assert "hunter2" not in str(two.value)
    with pytest.raises(ConfigError) as three:
        Health(checks=[text, text])  # type: ignore[arg-type]
    assert "hunter2" not in str(three.value)


def test_options_do_not_show_them():
    """They are printed and logged; what is checked stays what it was."""
    config = Config(health=Health(checks={"a": "redis://:hunter2@cache:6379/0", "b": len}))
    assert repr(config.health) == (
        "Health(checks={'a': 'redis://***@cache:6379/0', 'b': <built-in function len>})"
    )
    assert "hunter2" not in repr(config)
    assert config.health.checks["a"] == "redis://:hunter2@cache:6379/0"


def test_what_holds_none_is_left_alone():
    """Addresses of mail, and URLs without users."""
    for text in ("user@host", "http://host/page", "x" * 30):
        assert wording.show(text) == repr(text)
