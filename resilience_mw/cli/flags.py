"""The flags that the declared options make."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

from resilience_mw.config import Config, Option, Section, options_of
from resilience_mw.config.describe import default_text
from resilience_mw.config.health_rules import Checks
from resilience_mw.config.rules import Boolean, Choice, Many

F = TypeVar("F", bound=Callable[..., Any])


def option_flags(sections: Iterable[type[Section]] | None = None) -> Callable[[F], F]:
    """Add a flag for every option, or for those of some sections, to a click command.

    The command receives the argument `flags`: the text typed, by dotted option name, ready for
    ``resolve(flags=flags)``, which checks it.

    Example:
        ```python
        @click.command()
        @option_flags()
        def serve(flags: dict[str, str]) -> None:
            config = resolve(flags=flags).config
        ```
    """
    chosen = Config.sections().values() if sections is None else sections
    known = {
        option.flag[2:].replace("-", "_"): option
        for section in chosen
        for option in options_of(section).values()
        if not option.python_only
    }

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def collect(*args: Any, **arguments: Any) -> Any:
            typed = {option.dotted: arguments.pop(key) for key, option in known.items()}
            flags = {
                dotted: text
                for dotted, value in typed.items()
                if (text := _text(value)) is not None
            }
            return function(*args, flags=flags, **arguments)

        decorated: Any = collect
        # click lists decorators from the innermost outwards.
        for key, option in reversed(known.items()):
            decorated = _flag(key, option)(decorated)
        result: F = decorated
        return result

    return decorate


def _flag(key: str, option: Option) -> Callable[[F], F]:
    names = f"{option.flag}/{option.no_flag}" if isinstance(option.rule, Boolean) else option.flag
    kind: dict[str, Any]
    if isinstance(option.rule, Boolean):
        kind = {"default": None}
    else:
        # Text, because the option's own rule reads and checks it as it does everywhere else.
        # A repeated list adds to the list rather than dropping what came first.
        kind = {
            "metavar": _metavar(option),
            "multiple": isinstance(option.rule, Many | Checks),
        }
    return click.option(names, key, help=f"{option.help} [default: {default_text(option)}]", **kind)


def _metavar(option: Option) -> str:
    if isinstance(option.rule, Choice):
        return f"[{'|'.join(option.rule.words)}]"
    return (option.unit or option.rule.kind).upper().replace(" ", "_")


def _text(value: bool | str | tuple[str, ...] | None) -> str | None:
    """Return what was typed for one flag, None where it was left out."""
    if value is None or value == ():
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else Many.separator.join(value)
