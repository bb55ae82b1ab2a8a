"""The program: finds its commands, and turns every user's mistake into one line and a code."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from typing import cast

import click

from resilience_mw.cli import commands
from resilience_mw.cli.group import ModuleGroup, unknown
from resilience_mw.config.wording import one_line
from resilience_mw.exceptions import ConfigError

NAME = "resilience-mw"
USAGE = 2
LONGEST_MESSAGE = 400


def version() -> str:
    """Return the version of the installed distribution."""
    try:
        return importlib.metadata.version("resilience_mw")
    except importlib.metadata.PackageNotFoundError:
        return "0+unknown"


@click.group(cls=ModuleGroup, package=commands, invoke_without_command=True)
@click.version_option(version(), prog_name=NAME)
@click.pass_context
def program(ctx: click.Context) -> None:
    """Overload protection for ASGI and WSGI applications."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def run(argv: Sequence[str] | None = None, command: click.Command = program) -> int:
    """Run `command` and return the exit code: its own, 2 for wrong usage or configuration."""
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
    return unknown("option", error.option_name, known)
