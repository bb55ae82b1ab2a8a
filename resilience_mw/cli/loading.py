"""Import the app that a command is about."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
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
    module, _, attribute = app.partition(":")
    if not module or not attribute:
        raise click.UsageError(f'APP must be "module:attribute", got {plain(app)}')
    if os.getcwd() not in sys.path[:1]:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module)
        for name in attribute.split("."):
            found = getattr(found, name)
        return found() if factory else found
    except ConfigError:
        raise
    except Exception as error:
        reason = one_line(f"{type(error).__name__}: {error}", 200)
        raise click.ClickException(f"{plain(app)} could not be loaded: {reason}") from error


def factory_option(command: F) -> F:
    """Add the flag for an app that is made by a function."""
    return click.option("--factory", is_flag=True, help="APP is a function that returns the app.")(
        command
    )
