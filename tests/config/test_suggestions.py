"""Which names are suggested, and how wrong values are shown where there are several."""

from __future__ import annotations

import pytest

from resilience_mw import Config, Health
from resilience_mw.cli.group import unknown
from resilience_mw.exceptions import ConfigError
from tests.config.test_errors import the_line


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("RESILIENCE_ROLLOUT_STOR", "; did you mean RESILIENCE_ROLLOUT_STORE?"),
        ("RESILIENCE_CONFIG", "; did you mean RESILIENCE_CONFIG_FILE?"),
        ("RESILIENCE_MAX_LIMIT", "; did you mean RESILIENCE_BACKPRESSURE_MAX_LIMIT?"),
        ("RESILIENCE_LOG_LEVEL", "; `resilience-mw options` lists those that there are"),
    ],
)
def test_only_what_is_near_is_suggested(name: str, message: str):
    """A prefix that all variables share is no likeness."""
    with pytest.raises(ConfigError) as caught:
        Config.from_env({name: "1"})
    assert the_line(caught.value) == f"unknown environment variable {name}{message}"


def test_a_section_that_is_like_none_lists_them():
    """All five of them."""
    with pytest.raises(ConfigError) as caught:
        Config.from_mapping({"zzz": {}})
    assert the_line(caught.value) == (
        "unknown option zzz; there are limit, backpressure, deadline, health, runner"
    )


def test_a_wrong_check_is_named():
    """One among many."""
    with pytest.raises(ConfigError) as caught:
        Health(checks={"a": "memory:", "b": 5})
    assert the_line(caught.value).endswith(", got {'b': 5}")


@pytest.mark.parametrize("text", ["(0.2, 30)", "0.2,30", " ( 0.2 ,30 ) "])
def test_a_pair_may_be_written_as_in_python(text: str):
    """As the table of options and the pages write it."""
    config = Config.from_env({"RESILIENCE_HEALTH_UNREADY_WHEN_SHEDDING": text})
    assert config.health.unready_when_shedding == (0.2, 30.0)


@pytest.mark.parametrize(
    ("name", "known", "message"),
    [
        ("docker", ["haproxy", "kubernetes"], "; there are haproxy, kubernetes"),
        ("nosuch", ["pct", "cart"], "; there are pct, cart"),
        ("kubernets", ["haproxy", "kubernetes"], "; did you mean kubernetes?"),
    ],
)
def test_commands_and_rules_too(name: str, known: list[str], message: str):
    """What is far from all of them is like none."""
    assert unknown("export", name, known) == f"unknown export {name}{message}"
