"""Import the app that a command is about."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from operator import attrgetter
from typing import Any, TypeVar

import click

from resilience_mw.config.wording import one_line, plain
from resilience_mw.exceptions import ConfigError

F = TypeVar("F", bound=Callable[..., Any])


def load(app: str, *, factory: bool = False) -> Any:
    """Import an app, from the working directory too.

    Args:
        app: ``module:attribute``.
        factory: whether that is a function which makes the app.

    Raises:
        ConfigError: its own code gives an option that is unknown or breaks a rule.
        click.ClickException: it cannot be imported.
    """
    look_here(app)
    try:
        found = imported(app)
        return found() if factory else found
    except ConfigError:
        raise
    except Exception as error:
        reason = one_line(f"{type(error).__name__}: {error}", 200)
        raise click.ClickException(f"{plain(app)} could not be loaded: {reason}") from error


def look_here(app: str) -> None:
    """Have the working directory looked at, too, when ``app`` is imported.

    Raises:
        click.UsageError: it is not ``module:attribute``.
    """
    module, _, attribute = app.partition(":")
    if not module or not attribute:
        raise click.UsageError(f'APP must be "module:attribute", got {plain(app)}')
    if os.getcwd() not in sys.path[:1]:
        sys.path.insert(0, os.getcwd())


def imported(app: str) -> Any:
    """Import what ``module:attribute`` names; a module may be a file of any name."""
    module, _, attribute = app.partition(":")
    return attrgetter(attribute)(importlib.import_module(module))


def factory_option(command: F) -> F:
    """Add the flag for an app that is made by a function."""
    return click.option("--factory", is_flag=True, help="APP is a function that returns the app.")(
        command
    )
