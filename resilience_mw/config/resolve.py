"""Put the sources together: flag > argument > environment > file > settings > default."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from resilience_mw.config.config import Config
from resilience_mw.config.handing import flags_in
from resilience_mw.config.option import CONFIG_FILE
from resilience_mw.config.section import Section, options_of
from resilience_mw.config.sources import (
    Layer,
    build,
    read_environment,
    read_flags,
    read_mapping,
    read_objects,
    read_toml,
)

S = TypeVar("S", bound=Section)


@dataclass(frozen=True)
class Resolved:
    """The options in force and, by dotted name, where each came from.

    A source reads "argument", "flag --limit-...", "environment RESILIENCE_LIMIT_...", "settings",
    "file <path>" or "default".
    """

    config: Config
    sources: dict[str, str]


def resolve(
    given: Config | None = None,
    *,
    flags: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] | os.PathLike[str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Resolved:
    """Return the options in force.

    Args:
        given: Options set in code; only those that were given count.
        flags: The text of command-line flags by dotted option name; above `given`, because a flag
            is typed for this one run.
        settings: The framework's `RESILIENCE` setting, or the path of a TOML file.
        environ: The environment; that of the process if left out. The TOML file that
            `RESILIENCE_CONFIG_FILE` names counts less than variables and more than settings; the
            flags of `resilience-mw run` come this way, too.

    Raises:
        ConfigError: A name is unknown, a value breaks its rule, even where another source wins,
            or options contradict each other.
    """
    kind = Config if given is None else type(given)
    sections = kind.sections()
    environ = os.environ if environ is None else environ
    file = environ.get(CONFIG_FILE)
    layer = {
        **_read_settings(settings, kind),
        **(read_toml(file, sections) if file else {}),
        **read_environment(environ, sections),
        **({} if given is None else read_objects(given.parts())),
        **read_flags({**flags_in(environ, sections), **(flags or {})}, sections),
    }
    sources = {
        option.dotted: layer[option.dotted].source if option.dotted in layer else "default"
        for section in sections.values()
        for option in options_of(section).values()
    }
    return Resolved(kind(**build(layer, sections)), sources)


def section_from_kwargs(
    section: type[S],
    kwargs: Mapping[str, Any],
    *,
    settings: Mapping[str, Any] | os.PathLike[str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> S:
    """Return one section for a middleware with the keyword options `kwargs`.

    What they leave out comes from the environment, the settings or the defaults.

    Raises:
        ConfigError: As in `resolve`.
    """
    parts: dict[str, Any] = {section.section: section(**kwargs)}
    resolved: S = getattr(
        resolve(Config(**parts), settings=settings, environ=environ).config, section.section
    )
    return resolved


def _read_settings(
    settings: Mapping[str, Any] | os.PathLike[str] | None, kind: type[Config]
) -> Layer:
    if settings is None:
        return {}
    if isinstance(settings, os.PathLike):
        return read_toml(settings, kind.sections())
    return read_mapping(settings, kind.sections(), spelling="RESILIENCE")
