"""Read options from mappings, TOML files, the environment and flags into one form.

Every reader returns a `Layer` of checked values that know how they were spelled, so that an error
found now, or when layers are put together, names what the user wrote.
"""

from __future__ import annotations

import contextlib
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from resilience_mw.config.option import BY_FLAG, ENV_PREFIX, NO_OPTIONS, Option
from resilience_mw.config.rules import OrNone
from resilience_mw.config.section import Section, options_of, unknown_option, unknown_section
from resilience_mw.config.wording import hint, likely, one_line, plain, show
from resilience_mw.exceptions import ConfigError

Sections = Mapping[str, type[Section]]


@dataclass(frozen=True)
class Value:
    """A checked value and where it came from."""

    value: Any
    source: str
    """What `Resolved.sources` says."""
    spelling: str = ""
    """What an error names before its message; empty for Python arguments, which need no more."""


Layer = Mapping[str, Value]
"""Values by dotted name, from one source or from several put together."""


def read_mapping(mapping: object, sections: Sections, spelling: str = "") -> Layer:
    """Read nested mappings; `spelling` is the name of the setting, if it has one."""
    with _spelled(spelling):
        return {
            option.dotted: Value(option.check(value), "settings", spelling)
            for option, value in _nested(mapping, sections)
        }


def read_toml(path: str | os.PathLike[str], sections: Sections) -> Layer:
    """Read one table a section; "none" and "off" stand for None, which TOML lacks."""
    name = plain(os.fspath(path))
    with _spelled(name):
        return {
            option.dotted: Value(_from_toml(option, value), f"file {name}", name)
            for option, value in _nested(_load(path), sections)
        }


def read_environment(environ: Mapping[str, str], sections: Sections) -> Layer:
    """Read every variable that begins with our prefix; one that we do not know is an error."""
    known = {option.env: option for option in _all(sections)}
    layer = {}
    ours = (name for name in environ if name.startswith(ENV_PREFIX) and name not in NO_OPTIONS)
    for name in sorted(ours):
        if name not in known:
            meant = likely(name, [*known, *sorted(NO_OPTIONS - {BY_FLAG})])
            told = hint(meant) or "; `resilience-mw options` lists those that there are"
            raise ConfigError(f"unknown environment variable {plain(name)}{told}", meant=meant)
        with _spelled(name):
            value = _from_text(known[name], environ[name])
        layer[known[name].dotted] = Value(value, f"environment {name}", name)
    return layer


def read_flags(flags: Mapping[str, str], sections: Sections) -> Layer:
    """Read the text of command-line flags by dotted option name."""
    known = {option.dotted: option for option in _all(sections)}
    layer = {}
    for dotted, text in flags.items():
        if dotted not in known:
            raise unknown_option(dotted, sections.values())
        option = known[dotted]
        with _spelled(option.flag):
            value = _from_text(option, text)
        flag = option.no_flag if value is False else option.flag
        layer[dotted] = Value(value, f"flag {flag}", flag)
    return layer


def read_objects(parts: Iterable[Section]) -> Layer:
    """Return what was given to option objects."""
    return {
        option.dotted: Value(getattr(part, option.name), "argument")
        for part in parts
        for option in options_of(type(part)).values()
        if option.name in part.given
    }


def build(layer: Layer, sections: Sections) -> dict[str, Any]:
    """Return the section objects of a layer, by name; sections without a value are left out.

    Raises:
        ConfigError: Options contradict each other; the message begins with their spellings.
    """
    built: dict[str, Any] = {}
    for name, section in sections.items():
        options = options_of(section).values()
        values = {o.name: layer[o.dotted].value for o in options if o.dotted in layer}
        if not values:
            continue
        try:
            built[name] = section(**values)
        except ConfigError as error:
            involved = [layer[dotted].spelling for dotted in error.options if dotted in layer]
            with _spelled(", ".join(dict.fromkeys(filter(None, involved)))):
                raise
    return built


def write_environment(parts: Iterable[Section]) -> dict[str, str]:
    """Return the variables that spell what was given to option objects."""
    environ = {}
    for part in parts:
        for option in options_of(type(part)).values():
            if option.name in part.given:
                environ[option.env] = _to_text(option, getattr(part, option.name))
    return environ


def _all(sections: Sections) -> list[Option]:
    return [option for section in sections.values() for option in options_of(section).values()]


def _nested(mapping: object, sections: Sections) -> Iterator[tuple[Option, object]]:
    for section_name, values in _items(mapping, "the configuration must be a mapping of sections"):
        if section_name not in sections:
            raise unknown_section(section_name, sections.values())
        options = options_of(sections[section_name])
        for name, value in _items(values, f"{section_name} must be a mapping of options"):
            if name not in options:
                raise unknown_option(f"{section_name}.{name}", sections.values())
            yield options[name], value


def _items(mapping: object, rule: str) -> Iterator[tuple[str, object]]:
    if not isinstance(mapping, Mapping):
        raise ConfigError(f"{rule}, got {show(mapping)}")
    return ((str(name), value) for name, value in mapping.items())


def _load(path: str | os.PathLike[str]) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"is not valid TOML: {one_line(str(error))}") from None


def _from_toml(option: Option, value: object) -> Any:
    _require_text(option)
    off = isinstance(option.rule, OrNone) and option.rule.is_off(value)
    return option.check(None if off else value)


def _from_text(option: Option, text: str) -> Any:
    _require_text(option)
    return option.check(option.rule.parse(text.strip()))


def _to_text(option: Option, value: object) -> str:
    _require_text(option)
    text = option.rule.text(value)
    if option.rule.parse(text) != value:
        # A path prefix with a comma in it would come back as two.
        raise option.error("cannot be written as text", value)
    return text


def _require_text(option: Option) -> None:
    if option.python_only:
        raise ConfigError(f"{option.dotted} can only be set in Python", options=(option.dotted,))


@contextlib.contextmanager
def _spelled(spelling: str) -> Iterator[None]:
    try:
        yield
    except ConfigError as error:
        if not spelling:
            raise
        spelled = f"{spelling}: {error}"
        raise ConfigError(spelled, options=error.options, meant=error.meant) from None
