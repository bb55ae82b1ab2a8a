"""What a declaration can say, on a section made for this test."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from resilience_mw.config import Config, Section, options, options_of, resolve
from resilience_mw.config.option import option
from resilience_mw.config.rules import Object
from resilience_mw.exceptions import ConfigError


def ping() -> bool:
    return True


@dataclass(frozen=True, kw_only=True, repr=False)
class Zoo(Section, name="zoo"):
    """A section with values that only Python can hold."""

    keeper: Callable[[], bool] | None = option(  # noqa: RUF009
        None, Object("callable", callable), "Who feeds.", python_only=True
    )
    animals: Mapping[str, Any] = option(
        {}, Object("mapping", lambda value: isinstance(value, dict)), "Who eats.", python_only=True
    )


@dataclass(frozen=True, kw_only=True, repr=False)
class ZooConfig(Config):
    """The configuration with one more section."""

    zoo: Zoo = field(default_factory=Zoo)


def test_python_only_values_in_python():
    """They are given as arguments and in settings, checked, copied and pickled."""
    config = ZooConfig(zoo=Zoo(keeper=ping, animals={"lion": 1}))
    assert pickle.loads(pickle.dumps(config)) == config
    resolved = resolve(config, environ={})
    assert resolved.config == config
    assert resolved.sources["zoo.keeper"] == "argument"
    assert ZooConfig.from_mapping({"zoo": {"keeper": ping, "animals": {"lion": 1}}}) == config
    wrong: Any = 5
    with pytest.raises(ConfigError, match=r"^zoo.keeper must be a callable, got 5$"):
        Zoo(keeper=wrong)


def test_python_only_values_have_no_text(tmp_path: Path):
    """A variable, a flag or a file that tries is told so; nothing is written either."""
    message = "zoo.keeper can only be set in Python"
    with pytest.raises(ConfigError) as caught:
        ZooConfig.from_env({"RESILIENCE_ZOO_KEEPER": "ping"})
    assert str(caught.value) == f"RESILIENCE_ZOO_KEEPER: {message}"
    with pytest.raises(ConfigError) as caught:
        resolve(ZooConfig(), flags={"zoo.keeper": "ping"}, environ={})
    assert str(caught.value) == f"--zoo-keeper: {message}"
    (tmp_path / "zoo.toml").write_text('[zoo]\nkeeper = "ping"\n')
    with pytest.raises(ConfigError) as caught:
        ZooConfig.from_toml(tmp_path / "zoo.toml")
    assert str(caught.value) == f"{tmp_path}/zoo.toml: {message}"
    with pytest.raises(ConfigError) as caught:
        ZooConfig(zoo=Zoo(keeper=ping)).to_env()
    assert str(caught.value) == message


def test_python_only_options_are_listed_without_variable_and_flag():
    """The table says that there is no other spelling."""
    keeper, animals = options([Zoo])
    assert (keeper.name, keeper.type, keeper.env, keeper.flag) == ("zoo.keeper", "callable", "", "")
    assert animals.default == "{}"


def test_a_mutable_default_is_not_shared():
    """Each section has a dictionary of its own."""
    assert Zoo().animals == {}
    assert Zoo().animals is not Zoo().animals


def test_names_come_from_the_declaration():
    """One declaration gives every name."""
    keeper = options_of(Zoo)["keeper"]
    assert keeper.dotted == "zoo.keeper"
    assert keeper.env == "RESILIENCE_ZOO_KEEPER"
    assert keeper.flag == "--zoo-keeper"
    assert keeper.no_flag == "--no-zoo-keeper"


def test_a_subclass_keeps_the_name_of_its_section():
    """A user's subclass of a section stands in for it."""

    class Ark(Zoo):
        pass

    assert Ark.section == "zoo"
    assert ZooConfig(zoo=Ark(keeper=ping)).given == {"zoo.keeper"}
