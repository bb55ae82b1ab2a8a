"""The five spellings mean the same, and the sources are put together in order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from resilience_mw.config import (
    Backpressure,
    Config,
    Deadline,
    Limit,
    Runner,
    resolve,
    section_from_kwargs,
)
from resilience_mw.exceptions import ConfigError
from tests.config.spellings import (
    GOOD,
    OPTIONS,
    SPELLED,
    argument,
    environment,
    mapping,
    somebody,
    toml,
)

NAME = "limit.max_concurrent_requests"
VARIABLE = "RESILIENCE_LIMIT_MAX_CONCURRENT_REQUESTS"


def test_every_option_has_a_good_value():
    """An option that is added without its good value is found here."""
    assert GOOD.keys() == OPTIONS.keys()


@pytest.mark.parametrize("dotted", SPELLED)
def test_spellings_mean_the_same(dotted: str, tmp_path: Path):
    """One option in Python, settings, TOML, the environment and a flag gives one configuration."""
    value, text = GOOD[dotted]
    section, name = dotted.split(".")
    expected = argument(dotted, value)
    assert expected != Config()
    for config in (
        mapping(dotted, value),
        Config.from_mapping({section: {name: value}}),
        toml(dotted, value, tmp_path),
        environment(dotted, text),
        environment(dotted, f"  {text}\n"),
        resolve(flags={dotted: text}, environ={}).config,
        resolve(expected, environ={}).config,
    ):
        assert config == expected
        assert config.given == {dotted}
    of_middleware = section_from_kwargs(Config.sections()[section], {name: value}, environ={})
    assert of_middleware == getattr(expected, section)


@pytest.mark.parametrize("dotted", SPELLED)
def test_sources_say_where_each_value_came_from(dotted: str, tmp_path: Path):
    """Exactly the option that was set has a source other than the default."""
    value, text = GOOD[dotted]
    section, name = dotted.split(".")
    option = OPTIONS[dotted]
    toml(dotted, value, tmp_path)
    file = tmp_path / "resilience.toml"
    flag = option.no_flag if value is False else option.flag
    for source, resolved in {
        "argument": resolve(argument(dotted, value), environ={}),
        f"flag {flag}": resolve(flags={dotted: text}, environ={}),
        f"environment {option.env}": resolve(environ={option.env: text}),
        "settings": resolve(settings={section: {name: value}}, environ={}),
        f"file {file}": resolve(settings=file, environ={}),
    }.items():
        assert resolved.sources == {
            other: source if other == dotted else "default" for other in OPTIONS
        }


def test_callables_are_set_in_python():
    """What has no text can still be an argument, a setting and a keyword of a middleware."""
    for name in ("priority", "user"):
        dotted = f"backpressure.{name}"
        expected = argument(dotted, somebody)
        assert mapping(dotted, somebody) == expected != Config()
        of_middleware = section_from_kwargs(Backpressure, {name: somebody}, environ={})
        assert of_middleware == expected.backpressure
        with pytest.raises(ConfigError):
            expected.to_env()


def test_precedence():
    """Flag over argument over environment over settings over default, one by one."""
    sources: dict[str, Any] = {
        "settings": {"limit": {"max_concurrent_requests": 1}},
        "environ": {VARIABLE: "2"},
        "given": Config(limit=Limit(max_concurrent_requests=3)),
        "flags": {NAME: "4"},
    }
    used: dict[str, Any] = {"environ": {}}
    assert resolve(**used).config.limit.max_concurrent_requests == 0
    for expected, (source, value) in enumerate(sources.items(), start=1):
        used[source] = value
        assert resolve(**used).config.limit.max_concurrent_requests == expected


def test_sources_are_put_together_by_option():
    """A source that wins one option leaves the others of the section to the sources below."""
    resolved = resolve(
        Config(backpressure=Backpressure(law="aimd")),
        flags={"runner.protect": "false"},
        environ={"RESILIENCE_BACKPRESSURE_MAX_LIMIT": "50", "PATH": "/bin", "RESILIENT": "x"},
        settings={"backpressure": {"max_limit": 70, "queue_size": 7}, "runner": {}},
    )
    assert resolved.config == Config(
        backpressure=Backpressure(law="aimd", max_limit=50, queue_size=7),
        runner=Runner(protect=False),
    )
    assert resolved.sources["backpressure.initial_limit"] == "default"
    assert resolved.sources["backpressure.queue_size"] == "settings"
    assert resolved.sources["runner.protect"] == "flag --no-runner-protect"
    assert resolved.config.backpressure.initial_limit == 50


def test_an_argument_equal_to_the_default_wins():
    """Saying 0 in code is more than leaving it out."""
    given = Config(limit=Limit(max_concurrent_requests=0))
    resolved = resolve(given, environ={VARIABLE: "5"})
    assert resolved.config.limit.max_concurrent_requests == 0
    assert resolved.sources[NAME] == "argument"
    assert resolve(Config(), environ={VARIABLE: "5"}).config.limit.max_concurrent_requests == 5


def test_the_environment_of_the_process_is_the_default(monkeypatch: pytest.MonkeyPatch):
    """Left out, `environ` is the real one; passed empty, it is empty."""
    monkeypatch.setenv(VARIABLE, "5")
    assert resolve().config.limit.max_concurrent_requests == 5
    assert Config.from_env().limit.max_concurrent_requests == 5
    assert section_from_kwargs(Limit, {}).max_concurrent_requests == 5
    assert resolve(environ={}).config == Config.from_env({}) == Config()


def test_section_from_kwargs_fills_in_from_the_sources_below():
    """A middleware's keywords win; environment and settings give the rest."""
    limit = section_from_kwargs(
        Limit,
        {"max_concurrent_requests": 5},
        environ={VARIABLE: "9", "RESILIENCE_LIMIT_EXEMPT": "/a,/b"},
        settings={"limit": {"exempt": ["/c"]}},
    )
    assert limit == Limit(max_concurrent_requests=5, exempt=("/a", "/b"))


@pytest.mark.parametrize("word", ["none", "None", "off", "OFF"])
def test_words_for_none(word: str, tmp_path: Path):
    """Text has no None, and TOML has no null: a word stands for it."""
    assert environment("deadline.timeout", word) == Config(deadline=Deadline(timeout=None))
    file = tmp_path / "conf.toml"
    file.write_text(f'[deadline]\ntimeout = "{word}"\n')
    assert Config.from_toml(file) == Config(deadline=Deadline(timeout=None))


@pytest.mark.parametrize(
    ("word", "value"),
    [(w, True) for w in ("1", "true", "YES", "On")]
    + [(w, False) for w in ("0", "False", "no", "off")],
)
def test_words_for_booleans(word: str, value: bool):
    """The usual words, in any case."""
    assert environment("backpressure.enabled", word).backpressure.enabled is value


def test_an_empty_variable_is_an_empty_list():
    """A list can be made empty in the environment; blanks around its items do not count."""
    assert environment("limit.exempt", "") == Config(limit=Limit(exempt=()))
    assert environment("limit.exempt", " /a , /b ").limit.exempt == ("/a", "/b")


def test_digits_are_ascii():
    """Digits of other scripts, which `int` and `float` take, are no numbers here."""
    for dotted in (NAME, "deadline.receive_timeout"):
        with pytest.raises(ConfigError, match=r"must be an? (integer|number), got '٣'"):
            environment(dotted, "٣")


def test_to_env_writes_what_was_given():
    """Only given options are written, as text that a child process reads back."""
    config = Config(
        limit=Limit(max_concurrent_requests=0, exempt=("/a", "/b")),
        deadline=Deadline(timeout=None, receive_timeout=2.5),
        runner=Runner(protect=False, drain_delay=3),
    )
    assert config.to_env() == {
        "RESILIENCE_LIMIT_MAX_CONCURRENT_REQUESTS": "0",
        "RESILIENCE_LIMIT_EXEMPT": "/a,/b",
        "RESILIENCE_DEADLINE_RECEIVE_TIMEOUT": "2.5",
        "RESILIENCE_DEADLINE_TIMEOUT": "none",
        "RESILIENCE_RUNNER_PROTECT": "false",
        "RESILIENCE_RUNNER_DRAIN_DELAY": "3",
    }
    assert Config().to_env() == {}


def test_to_env_refuses_what_would_come_back_different():
    """A comma inside a path would split it in two, so it is an error rather than a surprise."""
    with pytest.raises(ConfigError) as caught:
        Config(limit=Limit(exempt=("/a,/b",))).to_env()
    assert str(caught.value) == "limit.exempt cannot be written as text, got ('/a,/b',)"
