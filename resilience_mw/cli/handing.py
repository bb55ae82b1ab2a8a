"""What commands that load an app have in common: its flags and file count before it is imported."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import click

from resilience_mw.config import Config, handed_down, resolve

F = TypeVar("F", bound=Callable[..., Any])


def config_file_option(command: F) -> F:
    """Add the flag for a file of options."""
    return click.option(
        "--config-file",
        metavar="PATH",
        help="TOML file of options, below flags and variables. [env: RESILIENCE_CONFIG_FILE]",
    )(command)


@contextlib.contextmanager
def options_of_command(flags: Mapping[str, str], file: str | None) -> Iterator[None]:
    """Let whatever resolves options meanwhile, here or in a child, find these above all others.

    Args:
        flags: the text typed, by dotted option name.
        file: the path of a TOML file; ``None`` = the one that the environment names, if any.

    Raises:
        ConfigError: an option is unknown or breaks a rule; where it was typed is said first.
    """
    resolve(flags=flags)  # before variables of the same name are written over
    with handed_down(Config.sections(), flags, file):
        resolve()
        yield
