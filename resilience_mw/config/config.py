"""`Config`: the sections together, and its spellings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self, cast

from resilience_mw.config.options import Backpressure, Deadline, Health, Limit, Runner
from resilience_mw.config.section import Section, unknown_section
from resilience_mw.config.sources import (
    Layer,
    build,
    read_environment,
    read_mapping,
    read_toml,
    write_environment,
)
from resilience_mw.config.wording import show
from resilience_mw.exceptions import ConfigError, KeywordError


@dataclass(frozen=True, kw_only=True, repr=False)
class Config:
    """All options, in sections.

    ``Config()`` holds the defaults.
    ``Config(limit=Limit(max_concurrent_requests=100))`` changes one of them.

    Raises:
        ConfigError: A section is unknown or not an object of its class.
    """

    limit: Limit = field(default_factory=Limit)
    backpressure: Backpressure = field(default_factory=Backpressure)
    deadline: Deadline = field(default_factory=Deadline)
    health: Health = field(default_factory=Health)
    runner: Runner = field(default_factory=Runner)

    def __new__(cls, *values: object, **sections: object) -> Self:
        if values:
            rule = "takes its sections by name (from_mapping, from_toml and from_env read others)"
            raise KeywordError(f"{cls.__name__} {rule}, got {show(values[0])}")
        known = cls.sections()
        for name, section in sections.items():
            if name not in known:
                raise unknown_section(name, known.values())
            if not isinstance(section, known[name]):
                kind = known[name].__name__
                raise ConfigError(f"{name} must be a {kind}, got {show(section)}", options=(name,))
        return super().__new__(cls)

    @classmethod
    def sections(cls) -> dict[str, type[Section]]:
        """Return the option classes by the name of their section."""
        return {part.name: cast(type[Section], part.default_factory) for part in fields(cls)}

    @property
    def given(self) -> frozenset[str]:
        """The dotted names of the options that were set explicitly."""
        return frozenset(f"{s.section}.{name}" for s in self.parts() for name in s.given)

    def parts(self) -> list[Section]:
        """Return the section objects in order."""
        return [getattr(self, name) for name in self.sections()]

    def __repr__(self) -> str:
        parts = ", ".join(f"{part.section}={part!r}" for part in self.parts() if part.given)
        return f"{type(self).__name__}({parts})"

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> Self:
        """Read nested mappings: ``{"limit": {"max_concurrent_requests": 5}}``.

        Raises:
            ConfigError: A name is unknown or a value breaks its rule.
        """
        return cls._from(read_mapping(mapping, cls.sections()))

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> Self:
        """Read `RESILIENCE_<SECTION>_<OPTION>` variables, of the process if none are passed.

        Raises:
            ConfigError: A value breaks its rule, or a variable with our prefix is unknown.
        """
        return cls._from(
            read_environment(os.environ if environ is None else environ, cls.sections())
        )

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str]) -> Self:
        """Read the tables `[limit]`, `[backpressure]`, ... of a TOML file; "none" stands for None.

        Raises:
            ConfigError: The file is missing or no TOML, a name is unknown, a value breaks its rule.
        """
        return cls._from(read_toml(path, cls.sections()))

    @classmethod
    def _from(cls, layer: Layer) -> Self:
        return cls(**build(layer, cls.sections()))

    def to_env(self) -> dict[str, str]:
        """Return the given options as variables that `from_env` reads back, for a child process.

        Raises:
            ConfigError: A given value cannot be written as text.
        """
        return write_environment(self.parts())
