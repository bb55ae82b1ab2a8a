"""One option, declared once: its default, rule, unit, help and names in every spelling."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from resilience_mw.config.rules import Invalid, Rule
from resilience_mw.config.wording import show
from resilience_mw.exceptions import ConfigError

ENV_PREFIX = "RESILIENCE_"
CONFIG_FILE = "RESILIENCE_CONFIG_FILE"
"""The variable that names a TOML file of options."""
BY_FLAG = "RESILIENCE_BY_FLAG"
"""The variable in which commands note which of the other variables stand for flags."""
NO_OPTIONS = frozenset({"RESILIENCE_ROLLOUT_STORE", CONFIG_FILE, BY_FLAG})
"""Variables with our prefix that are no options: they may stand where an app is started."""


@dataclass(frozen=True, kw_only=True)
class Option:
    """What is known of one option."""

    section: str
    name: str
    default: Any
    rule: Rule
    help: str
    unit: str = ""
    """What a number counts: "seconds", "requests"."""
    node: str = ""
    """The option of the Node system that this one re-creates, if any."""
    derive: Callable[[Any], Any] | None = None
    """Takes the section and returns the value of an option that was left out."""
    derived: str = ""
    """How people write a derived default."""
    python_only: bool = False
    """The value cannot be written as text: no variable, no flag, no TOML."""

    @property
    def dotted(self) -> str:
        """The name in messages and tables: `limit.max_concurrent_requests`."""
        return f"{self.section}.{self.name}"

    @property
    def env(self) -> str:
        """The environment variable: `RESILIENCE_LIMIT_MAX_CONCURRENT_REQUESTS`."""
        return f"{ENV_PREFIX}{self.section}_{self.name}".upper()

    @property
    def flag(self) -> str:
        """The command-line flag: `--limit-max-concurrent-requests`."""
        return f"--{self.section}-{self.name}".replace("_", "-")

    @property
    def no_flag(self) -> str:
        """The flag that turns a boolean option off: `--no-backpressure-enabled`."""
        return f"--no-{self.flag[2:]}"

    def check(self, value: object) -> Any:
        """Return `value` normalised, or raise `ConfigError` naming option, rule and value."""
        try:
            return self.rule.check(value)
        except Invalid as error:
            raise self.error(error.rule, error.value) from None

    def error(self, rule: str, value: object, *others: str) -> ConfigError:
        """Return the error of a broken rule; `others` are further options of the section in it."""
        involved = (self.dotted, *(f"{self.section}.{name}" for name in others))
        return ConfigError(f"{self.dotted} {rule}, got {show(value)}", options=involved)


def option(
    default: Any,
    rule: Rule,
    help: str,
    *,
    unit: str = "",
    node: str = "",
    derive: Callable[[Any], Any] | None = None,
    derived: str = "",
    python_only: bool = False,
) -> Any:
    """Declare one option as a dataclass field; the arguments are the attributes of `Option`."""
    known = {
        "default": default,
        "rule": rule,
        "help": help,
        "unit": unit,
        "node": node,
        "derive": derive,
        "derived": derived,
        "python_only": python_only,
    }
    metadata = {_DECLARED: known}
    if type(default).__hash__ is None:
        # Sections must not share one dictionary or list.
        return dataclasses.field(default_factory=lambda: copy.copy(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def declared(section: str, field: dataclasses.Field[Any]) -> Option:
    """Return what `option()` declared for a field."""
    return Option(section=section, name=field.name, **field.metadata[_DECLARED])


_DECLARED = "resilience_mw"
