"""Checks by name: a mapping that nobody can change."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from resilience_mw.config import Config, Health, resolve
from resilience_mw.exceptions import ConfigError


def ping() -> None:
    """Pass."""


CHECKS = {"db": ping, "cache": "tcp://127.0.0.1:6379"}


@pytest.mark.parametrize(
    "change",
    [
        lambda checks: checks.update(a=ping),
        lambda checks: checks.__setitem__("a", ping),
        lambda checks: checks.__delitem__("db"),
        lambda checks: checks.pop("db"),
        lambda checks: checks.popitem(),
        lambda checks: checks.clear(),
        lambda checks: checks.setdefault("a", ping),
        lambda checks: checks.__ior__({"a": ping}),
    ],
)
def test_they_cannot_be_changed(change: Any):
    """Other sections with the same values would change, too."""
    health = Health(checks=CHECKS)
    with pytest.raises(TypeError, match="options cannot be changed"):
        change(health.checks)
    assert health.checks == CHECKS


def test_they_are_a_copy():
    """What the caller does with the mapping later is the caller's."""
    given = dict(CHECKS)
    health = Health(checks=given)
    given.clear()
    assert health.checks == CHECKS
    for again in (copy.deepcopy(health), pickle.loads(pickle.dumps(health))):
        assert again == health
        assert hash(again) == hash(health)
    assert Health(checks=[("db", ping), *list(CHECKS.items())[1:]]) == health  # type: ignore[arg-type]


def test_objects_cannot_be_written_as_text():
    """A child process that is given the options as variables is not given less without a word."""
    with pytest.raises(ConfigError, match=r"^health\.checks cannot be written as text, got "):
        Config(health=Health(checks=CHECKS)).to_env()
    text = {"cache": CHECKS["cache"]}
    environ = Config(health=Health(checks=text)).to_env()
    assert environ == {"RESILIENCE_HEALTH_CHECKS": "cache=tcp://127.0.0.1:6379"}
    assert resolve(environ=environ).config.health.checks == text


def test_a_table_in_a_file(tmp_path: Any):
    """The natural form in TOML."""
    file = tmp_path / "resilience.toml"
    file.write_text('[health.checks]\ncache = "tcp://127.0.0.1:6379"\n"a.b" = "memory:"\n')
    assert Config.from_toml(file).health.checks == {
        "cache": "tcp://127.0.0.1:6379",
        "a.b": "memory:",
    }


@pytest.mark.parametrize(("given", "both"), [(0.5, (0.5, 10.0)), ((0.2, 30), (0.2, 30.0))])
def test_shedding_has_a_window(given: Any, both: tuple[float, float]):
    """Of ten seconds, unless that is said."""
    assert Health(unready_when_shedding=given).unready_when_shedding == both
