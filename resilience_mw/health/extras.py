"""Packages that a check needs and that may be missing."""

from __future__ import annotations

import importlib.util

from ..exceptions import ConfigError


def require(package: str, owner: str, install: str) -> None:
    """Raise `ConfigError` with the line to type unless `package` can be imported.

    Args:
        package: name to import.
        owner: the check that needs it, for the message.
        install: what to give to pip.
    """
    if importlib.util.find_spec(package) is None:
        raise ConfigError(f"{owner} needs {package}: pip install '{install}'")
