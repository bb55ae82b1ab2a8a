"""A group of commands that are found, not listed: one for each module of a package."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import click

from resilience_mw.config.wording import hint, likely, plain


class ModuleGroup(click.Group):
    """One command for each module in a package, whose attribute `command` it is.

    A module is imported only when its command is named, so that none pays for another's imports.

    Args:
        package: where the modules are.
        what: what a command of this group is called in messages.
        arguments: those of `click.Group`.
    """

    def __init__(self, *, package: ModuleType, what: str = "command", **arguments: Any) -> None:
        super().__init__(**arguments)
        self.package = package
        self.what = what

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(module.name for module in pkgutil.iter_modules(self.package.__path__))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        module = importlib.import_module(f"{self.package.__name__}.{cmd_name}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        # Shell completion resolves what is typed so far, which need not be a command yet.
        if self.get_command(ctx, args[0]) is None and not ctx.resilient_parsing:
            ctx.fail(unknown(self.what, args[0], self.list_commands(ctx)))
        return super().resolve_command(ctx, args)


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """Return what to say of a name that nobody knows."""
    known = list(known)
    listed = () if what == "option" else known  # of which there may be a hundred
    told = hint(likely(name, known), listed) or "; --help lists those that there are"
    return f"unknown {what} {plain(name)}{told}"
