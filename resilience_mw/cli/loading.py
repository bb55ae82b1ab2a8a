"""Import the app that a command is about."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

import click

from resilience_mw.config.wording import one_line, plain


def load(app: str) -> Any:
    """Import an app, from the working directory too.

    Args:
        app: ``module:attribute``.

    Raises:
        click.ClickException: it cannot be imported.
    """
    module, _, attribute = app.partition(":")
    if not module or not attribute:
        raise click.UsageError(f'APP must be "module:attribute", got {plain(app)}')
    sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module)
        for name in attribute.split("."):
            found = getattr(found, name)
    except Exception as error:
        reason = one_line(f"{type(error).__name__}: {error}", 200)
        raise click.ClickException(f"{plain(app)} could not be loaded: {reason}") from error
    return found
