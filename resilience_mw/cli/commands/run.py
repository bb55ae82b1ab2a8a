"""`resilience-mw run`: serve an app with the times of the options and a graceful end."""

from __future__ import annotations

import importlib
import logging
import os
import sys
from typing import Any

import click

from resilience_mw.cli.flags import option_flags
from resilience_mw.config import Config, resolve
from resilience_mw.exceptions import ConfigError
from resilience_mw.interface import interface_of

DID_NOT_START = 3

SERVERS = {"asgi": "uvicorn", "wsgi": "gunicorn"}

logger = logging.getLogger("resilience_mw")


@click.command("run")
@click.argument("app", metavar="APP")
@click.option(
    "--server",
    type=click.Choice(["auto", *SERVERS.values()]),
    default="auto",
    show_default=True,
    help="auto: Uvicorn for an ASGI app, Gunicorn for a WSGI app.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="Port to listen on; 0 = any that is free.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 1024),
    default=1,
    show_default=True,
    help="Processes. Limits are for each of them.",
)
@click.option(
    "--http",
    type=click.Choice(["auto", "httptools", "h11"]),
    default="auto",
    show_default=True,
    help="Uvicorn's parser.",
)
@click.option(
    "--loop",
    type=click.Choice(["auto", "asyncio", "uvloop"]),
    default="auto",
    show_default=True,
    help="Uvicorn's event loop.",
)
@click.option("--factory", is_flag=True, help="APP is a function that returns the app.")
@click.option(
    "--access-log/--no-access-log", default=False, show_default=True, help="Log every request."
)
@option_flags()
def command(app: str, server: str, flags: dict[str, str], **options: Any) -> int:
    """Serve APP, an import string such as "package.module:app".

    The app is protected unless it protects itself already. At SIGTERM it turns not ready, goes on
    accepting for --runner-drain-delay, then finishes what is in flight. Exit code 0 = stopped,
    1 = something had to be forced, 2 = wrong usage, 3 = did not start.
    """
    config = resolve(Config(), flags=flags).config
    module, _, attribute = app.partition(":")
    if not module or not attribute:
        raise click.UsageError(f'APP must be "module:attribute", got {app!r}')
    sys.path.insert(0, os.getcwd())
    if server == "auto":
        found = _server_for(app, factory=options["factory"], fork=options["workers"] > 1)
        if found is None:
            return DID_NOT_START
        server = found
    run = _runner(server)
    code: int = run(app, config, **options)
    return code


def _runner(server: str) -> Any:
    """Return the function that serves."""
    try:
        module = importlib.import_module(f"resilience_mw.runner.{server}")
    except ModuleNotFoundError as error:
        if error.name != server:
            raise
        raise click.ClickException(
            f"{server} is not installed: pip install 'resilience-mw[{server}]'"
        ) from None
    return module.run


def _server_for(app: str, *, factory: bool, fork: bool) -> str | None:
    """Return the server for an app, or ``None``, having said why, if it cannot be imported.

    Args:
        app: its import string.
        factory: whether it makes the app.
        fork: look at it in another process. What the app starts when it is imported, such as
            threads, would not be there in forked workers.
    """
    if not fork or not hasattr(os, "fork"):
        return _look(app, factory=factory)
    pid = os.fork()
    if pid == 0:
        code = DID_NOT_START
        try:
            server = _look(app, factory=factory)
            code = DID_NOT_START if server is None else list(SERVERS.values()).index(server)
        except ConfigError as error:
            click.echo(f"resilience-mw: {error}", err=True)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return list(SERVERS.values())[code] if 0 <= code < len(SERVERS) else None


def _look(app: str, *, factory: bool) -> str | None:
    try:
        found = _imported(app)
        return SERVERS[interface_of(found() if factory else found)]
    except ConfigError:
        raise
    except Exception:
        logging.basicConfig()
        logger.exception("the app %s could not be loaded", app)
        return None


def _imported(app: str) -> Any:
    module, _, attributes = app.partition(":")
    found: Any = importlib.import_module(module)
    for attribute in attributes.split("."):
        found = getattr(found, attribute)
    return found
