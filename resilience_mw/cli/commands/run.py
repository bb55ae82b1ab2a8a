"""`resilience-mw run`: serve an app with the times of the options and a graceful end."""

from __future__ import annotations

import functools
import importlib.util
import logging
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import click

from resilience_mw.cli.flags import option_flags
from resilience_mw.cli.handing import config_file_option, options_of_command
from resilience_mw.cli.helping import SectionedCommand
from resilience_mw.cli.loading import factory_option, imported, look_here
from resilience_mw.config import resolve
from resilience_mw.exceptions import ConfigError
from resilience_mw.interface import Interface, interface_of

DID_NOT_START = 3

SERVERS: dict[Interface, str] = {"asgi": "uvicorn", "wsgi": "gunicorn"}

INTERFACES = tuple(SERVERS)

logger = logging.getLogger("resilience_mw")


@click.command("run", cls=SectionedCommand)
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
    "--threads",
    type=click.IntRange(1, 1024),
    default=8,
    show_default=True,
    help="Gunicorn's threads in each process, for a WSGI app.",
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
@factory_option
@click.option(
    "--access-log/--no-access-log", default=False, show_default=True, help="Log every request."
)
@config_file_option
@option_flags()
def command(
    app: str, server: str, config_file: str | None, flags: dict[str, str], **options: Any
) -> int:
    """Serve APP, an import string such as "package.module:app".

    The app is protected unless it protects itself already. At SIGTERM it turns not ready, goes on
    accepting for --runner-drain-delay, then finishes what is in flight. Exit code 0 = stopped,
    1 = something had to be forced, 2 = wrong usage, 3 = did not start, or workers kept dying.
    """
    with options_of_command(flags, config_file):
        return _serve(app, server, **options)


def _serve(app: str, server: str, **options: Any) -> int:
    look_here(app)
    if server != "auto":
        _require(server)
    # An app may take long to import; in a container nobody else would listen meanwhile.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    interface = None
    if server != "uvicorn":
        look = functools.partial(_look, app, server, factory=options["factory"])
        interface = _interface(look, fork=options["workers"] > 1)
        if interface is None:
            return DID_NOT_START
        server = SERVERS[interface] if server == "auto" else server
        _require(server)
    if server == "gunicorn":
        _become_gunicorn(app, asgi=interface == "asgi", **options)
    del options["threads"]
    from resilience_mw.runner.uvicorn import run

    return run(app, **options)


def _require(server: str) -> None:
    if importlib.util.find_spec(server) is None:
        raise click.ClickException(
            f"{server} is not installed: pip install 'resilience-mw[{server}]'"
        )


def _become_gunicorn(
    app: str,
    *,
    asgi: bool,
    host: str,
    port: int,
    workers: int,
    threads: int,
    factory: bool,
    access_log: bool,
    **of_uvicorn: Any,
) -> NoReturn:
    """Replace this process: what importing the app began here must not be in Gunicorn's master."""
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    arguments = ["--config", "python:resilience_mw.runner.gunicorn", "--bind", address]
    arguments += ["--workers", str(workers)]
    arguments += ["--worker-class", "asgi"] if asgi else ["--threads", str(threads)]
    if access_log:
        arguments += ["--access-logfile", "-"]
    arguments.append(f"{app}()" if factory else app)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, "-m", "gunicorn", *arguments])


def _interface(look: Callable[[], Interface | None], *, fork: bool) -> Interface | None:
    """Return the protocol of an app, or ``None``, having said why, if it cannot be imported.

    Args:
        look: imports it.
        fork: do so at it in another process. What the app starts when it is imported, such as
            threads, would not be there in forked workers.
    """
    if not fork or not hasattr(os, "fork"):
        return look()
    pid = os.fork()
    if pid == 0:
        code = DID_NOT_START
        try:
            interface = look()
            code = DID_NOT_START if interface is None else INTERFACES.index(interface)
        except ConfigError as error:
            click.echo(f"resilience-mw: {error}", err=True)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return INTERFACES[code] if 0 <= code < len(INTERFACES) else None


def _look(app: str, server: str, *, factory: bool) -> Interface | None:
    try:
        found = imported(app)
        found = found() if factory else found
        interface = interface_of(found)
    except ConfigError:
        raise
    except Exception:
        logging.basicConfig()
        logger.exception("the app %s could not be loaded", app)
        return None
    if "gunicorn" in (server, SERVERS[interface]) and server != "uvicorn":
        # Here once, rather than in each of its workers.
        _warn(found)
    return interface


def _warn(app: Any) -> None:
    """Say which flags will have no effect on an app that protects itself."""
    from resilience_mw.runner.reach import without_effect
    from resilience_mw.runner.wrap import is_wrapped

    told = without_effect(app) if is_wrapped(app) or not resolve().config.runner.protect else ""
    if told:
        click.echo(f"resilience-mw: {told}", err=True)
