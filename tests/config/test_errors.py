"""Wrong values and unknown names, from every spelling but the flags (see tests/cli)."""

from __future__ import annotations

import dataclasses
import pickle
from pathlib import Path
from typing import Any

import pytest

from resilience_mw.cli.shares import VARIABLE
from resilience_mw.config import (
    Backpressure,
    Config,
    Deadline,
    Health,
    Limit,
    resolve,
    section_from_kwargs,
)
from resilience_mw.config.wording import LONGEST_VALUE
from resilience_mw.exceptions import ConfigError
from tests.config.spellings import (
    BAD,
    OPTIONS,
    argument,
    environment,
    every_bad,
    in_toml,
    mapping,
    toml,
)


def the_line(error: ConfigError) -> str:
    """Return the message, which must be one short line."""
    message = str(error)
    assert "\n" not in message
    assert len(message) < 400
    return message


def test_every_option_has_bad_values():
    """An option that is added without its bad values is found here."""
    assert BAD.keys() == OPTIONS.keys()


@every_bad(lambda value, text: True)
def test_wrong_values_in_python(dotted: str, rule: str, value: Any, text: str | None):
    """An argument and a setting name the option, the rule and the value."""
    with pytest.raises(ConfigError) as caught:
        argument(dotted, value)
    assert the_line(caught.value).startswith(f"{dotted} {rule}, got ")
    assert caught.value.options == (dotted,)
    with pytest.raises(ConfigError) as in_settings:
        mapping(dotted, value)
    assert the_line(in_settings.value) == f"RESILIENCE: {caught.value}"
    section, name = dotted.split(".")
    with pytest.raises(ConfigError) as of_middleware:
        section_from_kwargs(Config.sections()[section], {name: value}, environ={})
    assert str(of_middleware.value) == str(caught.value)
    with pytest.raises(ConfigError) as from_mapping:
        Config.from_mapping({section: {name: value}})
    assert str(from_mapping.value) == str(caught.value)


@every_bad(lambda value, text: in_toml(value))
def test_wrong_values_in_toml(dotted: str, rule: str, value: Any, text: str | None, tmp_path: Path):
    """A TOML file is named before the option, the rule and the value."""
    with pytest.raises(ConfigError) as caught:
        toml(dotted, value, tmp_path)
    assert the_line(caught.value).startswith(f"{tmp_path}/resilience.toml: {dotted} {rule}, got ")


@every_bad(lambda value, text: text is not None)
def test_wrong_values_in_the_environment(dotted: str, rule: str, value: Any, text: str):
    """A variable is named before the option, the rule and the value."""
    with pytest.raises(ConfigError) as caught:
        environment(dotted, text)
    assert the_line(caught.value).startswith(f"{OPTIONS[dotted].env}: {dotted} {rule}, got ")


@pytest.mark.parametrize("dotted", OPTIONS)
def test_unknown_names_suggest_the_nearest(dotted: str, tmp_path: Path):
    """A name with a letter too many is refused with the right one, in every spelling."""
    section, name = dotted.split(".")
    unknown = f"unknown option {dotted}x; did you mean {dotted}?"
    parts: dict[str, Any] = {f"{name}x": 1}
    with pytest.raises(ConfigError) as caught:
        Config.sections()[section](**parts)
    assert the_line(caught.value) == unknown
    with pytest.raises(ConfigError) as caught:
        section_from_kwargs(Config.sections()[section], parts, environ={})
    assert the_line(caught.value) == unknown
    with pytest.raises(ConfigError) as caught:
        resolve(settings={section: parts}, environ={})
    assert the_line(caught.value) == f"RESILIENCE: {unknown}"
    assert (caught.value.options, caught.value.meant) == ((f"{dotted}x",), dotted)
    (tmp_path / "conf.toml").write_text(f"[{section}]\n{name}x = 1\n")
    with pytest.raises(ConfigError) as caught:
        Config.from_toml(tmp_path / "conf.toml")
    assert the_line(caught.value) == f"{tmp_path}/conf.toml: {unknown}"
    env = OPTIONS[dotted].env
    with pytest.raises(ConfigError) as caught:
        Config.from_env({f"{env}X": "1"})
    assert the_line(caught.value) == f"unknown environment variable {env}X; did you mean {env}?"
    assert caught.value.meant == env
    with pytest.raises(ConfigError) as caught:
        resolve(flags={f"{dotted}x": "1"}, environ={})
    assert the_line(caught.value) == unknown


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"limits": {}}, "unknown option limits; did you mean limit?"),
        ({"max_wait": 1}, "unknown option max_wait; did you mean backpressure.max_wait?"),
        ({"limit.exempt": ()}, "unknown option limit.exempt; did you mean limit?"),
        (
            {"limit": {7: 1}},
            "unknown option limit.7; there are limit.max_concurrent_requests, limit.exempt",
        ),
        (
            {"limit": {"maxConcurrentRequests": 1}},
            "unknown option limit.maxConcurrentRequests;"
            " did you mean limit.max_concurrent_requests?",
        ),
        (
            {"limit": {"queue-size": 1}},
            "unknown option limit.queue-size; did you mean backpressure.queue_size?",
        ),
        ({"limit": 5}, "limit must be a mapping of options, got 5"),
        ({"limit": Limit()}, "limit must be a mapping of options, got Limit()"),
        ([], "the configuration must be a mapping of sections, got []"),
    ],
)
def test_shapes_of_a_mapping(mapping: Any, message: str):
    """Misplaced, foreign and malformed entries each have an error that leads on."""
    with pytest.raises(ConfigError) as caught:
        Config.from_mapping(mapping)
    assert the_line(caught.value) == message


def test_config_takes_only_its_sections():
    """A section that does not exist, or that is something else, is refused."""
    with pytest.raises(ConfigError, match=r"^unknown option limts; did you mean limit\?$"):
        Config(limts=Limit())  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match=r"^limit must be a Limit, got Health\(\)$"):
        Config(limit=Health())  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"^health must be a Health, got None$"):
        Config(health=None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"min_limit": 9, "max_limit": 8},
            "backpressure.min_limit must be <= backpressure.max_limit (8), got 9",
        ),
        (
            {"min_limit": 9, "initial_limit": 8},
            "backpressure.min_limit must be <= backpressure.initial_limit (8), got 9",
        ),
        (
            {"initial_limit": 1001},
            "backpressure.initial_limit must be <= backpressure.max_limit (1000), got 1001",
        ),
    ],
)
def test_limits_must_be_in_order(values: dict[str, Any], message: str):
    """min_limit <= initial_limit <= max_limit, defaults included."""
    with pytest.raises(ConfigError) as caught:
        Backpressure(**values)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"live_path": "/readyz"}, "ready_path must differ from health.live_path, got '/readyz'"),
        (
            {"startup_path": "/livez"},
            "startup_path must differ from health.live_path, got '/livez'",
        ),
        (
            {"startup_path": "/a", "ready_path": "/a"},
            "startup_path must differ from health.ready_path, got '/a'",
        ),
    ],
)
def test_probe_paths_must_differ(values: dict[str, Any], message: str):
    """One path cannot answer two probes."""
    with pytest.raises(ConfigError) as caught:
        Health(**values)
    assert str(caught.value) == f"health.{message}"


def test_a_contradiction_names_every_spelling_in_it():
    """Options that contradict each other across sources name the sources a person can change."""
    minimum = {"backpressure": {"min_limit": 7}}
    maximum = {"RESILIENCE_BACKPRESSURE_MAX_LIMIT": "3"}
    rule = "backpressure.min_limit must be <= backpressure.max_limit (3), got 7"
    with pytest.raises(ConfigError) as caught:
        resolve(settings=minimum, environ=maximum)
    assert str(caught.value) == f"RESILIENCE, RESILIENCE_BACKPRESSURE_MAX_LIMIT: {rule}"
    with pytest.raises(ConfigError) as caught:
        resolve(Config.from_mapping(minimum), environ=maximum)
    assert str(caught.value) == f"RESILIENCE_BACKPRESSURE_MAX_LIMIT: {rule}"
    with pytest.raises(ConfigError) as caught:
        resolve(Config.from_mapping(minimum), flags={"backpressure.max_limit": "3"}, environ={})
    assert str(caught.value) == f"--backpressure-max-limit: {rule}"
    with pytest.raises(ConfigError) as caught:
        Config.from_mapping({"backpressure": {"min_limit": 7, "max_limit": 3}})
    assert str(caught.value) == rule


def test_a_wrong_value_is_an_error_even_where_another_source_wins():
    """A variable that is wrong is reported although an argument overrides it."""
    with pytest.raises(ConfigError, match=r"^RESILIENCE_LIMIT_MAX_CONCURRENT_REQUESTS: limit"):
        resolve(
            Config(limit=Limit(max_concurrent_requests=5)),
            environ={"RESILIENCE_LIMIT_MAX_CONCURRENT_REQUESTS": "-1"},
        )


def test_the_contract_s_own_messages():
    """The wording that the documentation promises, to the letter."""
    wrong = "limit.max_concurrent_requests must be >= 0, got -1"
    with pytest.raises(ConfigError) as caught:
        Limit(max_concurrent_requests=-1)
    assert str(caught.value) == wrong
    with pytest.raises(ConfigError) as caught:
        Config.from_env({"RESILIENCE_LIMIT_MAX_CONCURRENT_REQUESTS": "-1"})
    assert str(caught.value) == f"RESILIENCE_LIMIT_MAX_CONCURRENT_REQUESTS: {wrong}"
    with pytest.raises(ConfigError) as caught:
        Limit(max_concurent_requests=5)  # type: ignore[call-arg]
    assert str(caught.value) == (
        "unknown option limit.max_concurent_requests; did you mean limit.max_concurrent_requests?"
    )


class Rude:
    """An object whose repr is of no use."""

    def __init__(self, answer: str | None = None) -> None:
        self.answer = answer

    def __repr__(self) -> str:
        if self.answer is None:
            raise RuntimeError("no repr")
        return self.answer


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a\nb", r"'a\nb'"),
        ("x" * 3000, f"'{'x' * LONGEST_VALUE}'... (3000 characters)"),
        (Rude("a\n  b"), "a b"),
        (Rude("y" * 10_000), f"{'y' * LONGEST_VALUE}..."),
        (Rude(), "<Rude>"),
        ("\ud800", r"'\ud800'"),
    ],
)
def test_values_are_shown_short_on_one_line(value: Any, shown: str):
    """Line breaks, megabytes and broken reprs leave the message one readable line."""
    with pytest.raises(ConfigError) as caught:
        Limit(max_concurrent_requests=value)
    assert str(caught.value) == f"limit.max_concurrent_requests must be an integer, got {shown}"


@pytest.mark.parametrize("word", ["none", "Off"])
def test_words_for_none_are_no_header(word: str):
    """In Python None is written as such; a word that means it elsewhere is a mistake."""
    with pytest.raises(ConfigError) as caught:
        Deadline(header=word)
    assert str(caught.value) == f"deadline.header must be a header name or None, got {word!r}"


def test_unknown_names_are_shown_short_on_one_line():
    """So do names, which come from outside as well."""
    with pytest.raises(ConfigError) as caught:
        Config.from_env({"RESILIENCE_A\nB": "1"})
    assert the_line(caught.value).startswith(r"unknown environment variable RESILIENCE_A\nB; ")
    with pytest.raises(ConfigError) as caught:
        Config.from_mapping({"limit": {"z" * 100_000: 1}})
    assert "zzz...; there are limit.max_concurrent_requests, " in the_line(caught.value)


def test_config_error_is_a_value_error_that_pickles():
    """It crosses process borders whole, as workers report to their parent."""
    with pytest.raises(ValueError, match="limit") as caught:
        Limit(max_concurrent_requests=-1)
    error = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(error, ConfigError)
    assert str(error) == str(caught.value)
    assert error.options == ("limit.max_concurrent_requests",)


def test_options_cannot_be_assigned_or_positional():
    """Option objects are frozen and take keywords only."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        Limit().max_concurrent_requests = 5  # type: ignore[misc]
    with pytest.raises(TypeError):
        Limit(5)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Config(Limit())  # type: ignore[call-arg]


def test_toml_that_cannot_be_read(tmp_path: Path):
    """A missing file, a folder, broken TOML and other encodings are one line each."""
    with pytest.raises(ConfigError) as caught:
        Config.from_toml(tmp_path / "none.toml")
    assert the_line(caught.value) == (
        f"{tmp_path}/none.toml: cannot be read: No such file or directory"
    )
    with pytest.raises(ConfigError) as caught:
        Config.from_toml(tmp_path)
    assert the_line(caught.value) == f"{tmp_path}: cannot be read: Is a directory"
    file = tmp_path / "broken.toml"
    file.write_text("[limit\n")
    with pytest.raises(ConfigError) as caught:
        resolve(settings=file, environ={})
    assert the_line(caught.value).startswith(f"{file}: is not valid TOML: Expected ']'")
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError) as caught:
        Config.from_toml(str(file))
    assert the_line(caught.value).startswith(f"{file}: is not valid TOML: 'utf-8' codec")
    file.write_text("[limit]\nmax_concurrent_requests = 1979-05-27\n")
    with pytest.raises(ConfigError) as caught:
        Config.from_toml(file)
    assert "must be an integer, got datetime.date(1979, 5, 27)" in the_line(caught.value)


def test_a_variable_of_a_command_is_no_unknown_option():
    """Whoever has exported it for `resilience-mw rollout` starts the app in the same shell."""
    assert Config.from_env({VARIABLE: "file:rollout.toml"}) == Config()
    with pytest.raises(ConfigError):
        Config.from_env({f"{VARIABLE}S": "file:rollout.toml"})
