"""The program: finds its commands, and turns every user's mistake into one line and a code."""

from __future__ import annotations

import importlib
import importlib.metadata
import pkgutil
from collections.abc import Iterable, Sequence
from typing import cast

import click

from resilience_mw.cli import commands
from resilience_mw.config.wording import nearest, one_line, plain
from resilience_mw.exceptions import ConfigError

NAME = "resilience-mw"
USAGE = 2
LONGEST_MESSAGE = 400


class Commands(click.Group):
    """One command for each module in `cli/commands`, whose attribute `command` it is.

    A module is imported only when its command is named, so that none pays for another's imports.
    A command may return its exit code; None is success.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(module.name for module in pkgutil.iter_modules(commands.__path__))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        module = importlib.import_module(f"{commands.__name__}.{cmd_name}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        # Shell completion resolves what is typed so far, which need not be a command yet.
        if self.get_command(ctx, args[0]) is None and not ctx.resilient_parsing:
            ctx.fail(_unknown("command", args[0], self.list_commands(ctx)))
        return super().resolve_command(ctx, args)


def version() -> str:
    """Return the version of the installed distribution."""
    try:
        return importlib.metadata.version("resilience_mw")
    except importlib.metadata.PackageNotFoundError:
        return "0+unknown"


@click.group(cls=Commands, invoke_without_command=True)
@click.version_option(version(), prog_name=NAME)
@click.pass_context
def program(ctx: click.Context) -> None:
    """Overload protection for ASGI and WSGI applications."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def run(argv: Sequence[str] | None = None, command: click.Command = program) -> int:
    """Run `command` and return the exit code: 2 for wrong usage or configuration."""
    try:
        code = command.main(argv, prog_name=NAME, standalone_mode=False)
    except click.NoSuchOption as error:
        return _fail(_unknown_flag(error), USAGE)
    except click.ClickException as error:
        return _fail(error.format_message(), error.exit_code)
    except ConfigError as error:
        return _fail(str(error), USAGE)
    except click.Abort:
        return _fail("aborted", 1)
    return code if isinstance(code, int) else 0


def _fail(message: str, code: int) -> int:
    click.echo(f"{NAME}: {one_line(message, LONGEST_MESSAGE)}", err=True)
    return code


def _unknown_flag(error: click.NoSuchOption) -> str:
    context = cast(click.Context, error.ctx)  # the parser always sets it
    parameters = context.command.get_params(context)
    known = [name for p in parameters for name in (*p.opts, *p.secondary_opts) if name[:2] == "--"]
    return _unknown("option", error.option_name, known)


def _unknown(what: str, name: str, known: Iterable[str]) -> str:
    return f"unknown {what} {plain(name)}; did you mean {nearest(name, known)}?"
