"""`resilience-mw check`: the options in force, and every pair of numbers that contradict."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Literal

import click

from resilience_mw.cli.flags import option_flags
from resilience_mw.cli.handing import config_file_option, options_of_command
from resilience_mw.cli.helping import SectionedCommand
from resilience_mw.cli.loading import factory_option, load
from resilience_mw.cli.sources import in_force
from resilience_mw.config import Resolved, options_of
from resilience_mw.config.wording import masked, one_line, show
from resilience_mw.interface import interface_of
from resilience_mw.runner.contradictions import Finding, Surroundings, contradictions
from resilience_mw.runner.inspecting import outside, shadowed

DEFAULT_PORT = 8000
"""Of Uvicorn, and of `resilience-mw run`."""


@click.command("check", cls=SectionedCommand)
@click.argument("app", metavar="APP")
@click.option(
    "--server",
    type=click.Choice(["auto", "uvicorn", "gunicorn"]),
    default="auto",
    show_default=True,
    help="auto: as `resilience-mw run` chooses.",
)
@click.option(
    "--lb-idle",
    type=click.FloatRange(0.0),
    default=60.0,
    show_default=True,
    help="Seconds after which the load balancer closes an idle connection.",
)
@click.option(
    "--grace",
    type=click.FloatRange(0.0),
    default=30.0,
    show_default=True,
    help="Seconds from SIGTERM to SIGKILL (terminationGracePeriodSeconds, TimeoutStopSec).",
)
@click.option("--config", "location", help="Gunicorn's configuration file, as for gunicorn -c.")
@click.option("--worker-class", help="Gunicorn's, as for gunicorn -k.")
@click.option("--threads", type=click.IntRange(1), help="Gunicorn's threads in each worker.")
@click.option("--timeout", type=click.IntRange(0), help="Gunicorn's timeout of a worker.")
@click.option("--graceful-timeout", type=click.IntRange(0), help="Gunicorn's graceful timeout.")
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    help="The server's port, if it is not 8000, or, for Gunicorn, not in its own settings.",
)
@click.option(
    "--limit-concurrency",
    type=click.IntRange(0),
    envvar="UVICORN_LIMIT_CONCURRENCY",
    help="Uvicorn's limit, if you set it.",
)
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True
)
@factory_option
@config_file_option
@option_flags()
def command(config_file: str | None, flags: dict[str, str], **arguments: Any) -> int:
    """Check the options for APP, an import string such as "package.module:app".

    Lists each option with where it came from, and every pair of numbers that contradict, those of
    the server, the load balancer and the orchestrator included. Exit code 1 = there are errors.
    """
    with options_of_command(flags, config_file):
        return _check(flags=flags, **arguments)


def _check(
    *,
    app: str,
    factory: bool,
    server: str,
    lb_idle: float,
    grace: float,
    location: str | None,
    port: int | None,
    limit_concurrency: int | None,
    form: Literal["text", "json"],
    flags: dict[str, str],
    **settings: Any,
) -> int:
    loaded = load(app, factory=factory)
    wsgi = interface_of(loaded) == "wsgi"
    gunicorn = server == "gunicorn" or (server == "auto" and wsgi)
    found: dict[str, Any] = {}
    namespace: Mapping[str, Any] = {}
    if gunicorn:
        found, namespace = _gunicorn(location, settings, run=server == "auto")
    resolved, idle = in_force(loaded, flags, namespace, gunicorn=gunicorn)
    found["ports"] = (port,) if port else found.get("ports", (DEFAULT_PORT,))
    around = Surroundings(
        lb_idle=lb_idle,
        grace=grace,
        limit_concurrency=limit_concurrency,
        shadowed=shadowed(loaded, resolved.config.health),
        outside=outside(loaded),
        without_effect=idle,
        **found,
    )
    findings = contradictions(resolved.config, around)
    name = f"gunicorn ({around.worker_class})" if gunicorn else "uvicorn"
    write = _as_json if form == "json" else _as_text
    click.echo(write(app, name, resolved, findings))
    return int(any(finding.level == "error" for finding in findings))


def _gunicorn(
    location: str | None, given: Mapping[str, Any], *, run: bool
) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """Return what Gunicorn adds to the surroundings, and the variables of its file."""
    try:
        from resilience_mw.runner.gunicorn.surroundings import read
    except ModuleNotFoundError as error:
        message = "gunicorn is not installed: pip install 'resilience-mw[gunicorn]'"
        raise click.ClickException(message) from error
    values = dict(given)
    if run and location is None and values["threads"] is None and not values["worker_class"]:
        values["threads"] = _threads_of_run()
    arguments = [
        f"--{name.replace('_', '-')}={value}" for name, value in values.items() if value is not None
    ]
    try:
        server = read(location, arguments)
    except RuntimeError as error:
        raise click.ClickException(one_line(str(error), 200)) from error
    family = server.family
    found = {
        "keep_alive": server.keepalive,
        "worker_timeout": server.timeout,
        "graceful_timeout": server.graceful_timeout,
        "one_at_a_time": family.name == "sync",
        "ports": server.ports,
        "threads": server.threads if family.threads else 1 if family.name == "sync" else None,
        "cannot": family.cannot,
        "worker_class": server.worker_class,
    }
    if not server.ours:
        told = f"{server.location} does not bring resilience_mw.runner.gunicorn in"
        found["cannot"] = (*family.cannot, ("runner.*", told))
    return found, server.namespace


def _threads_of_run() -> int | None:
    """The threads with which `resilience-mw run` starts Gunicorn, unless a file says it."""
    from resilience_mw.cli.commands.run import command as run

    if os.path.exists("gunicorn.conf.py") or "GUNICORN_CMD_ARGS" in os.environ:
        return None
    defaults = [option.default for option in run.params if option.name == "threads"]
    return defaults[0] if defaults and isinstance(defaults[0], int) else None


def _as_text(app: str, server: str, resolved: Resolved, findings: list[Finding]) -> str:
    rows = [row for option in _options(resolved) for row in _rows(option)]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    lines = [f"{app} on {server}", ""]
    lines += [
        f"{name.ljust(widths[0])}  {value.ljust(widths[1])}  {source}"
        for name, value, source in rows
    ]
    lines.append("")
    lines += [f"{finding.level}: {finding.message}" for finding in findings]
    errors = sum(finding.level == "error" for finding in findings)
    lines.append(f"{errors} errors, {len(findings) - errors} warnings")
    return "\n".join(lines)


def _rows(option: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return the lines of an option: one, or one for each name of those that hold several."""
    name, value, source = option["name"], option["value"], option["source"]
    if isinstance(value, Mapping) and value:
        return [(f"{name} {key}", show(what), source) for key, what in value.items()]
    return [(name, show(value), source)]


def _as_json(app: str, server: str, resolved: Resolved, findings: list[Finding]) -> str:
    errors = sum(finding.level == "error" for finding in findings)
    report = {
        "app": app,
        "server": server,
        "options": _options(resolved),
        "findings": [asdict(finding) for finding in findings],
        "errors": errors,
        "warnings": len(findings) - errors,
    }
    return json.dumps(report, indent=2, default=show)


def _options(resolved: Resolved) -> list[dict[str, Any]]:
    return [
        {
            "name": option.dotted,
            "value": shown(getattr(part, option.name)),
            "source": resolved.sources[option.dotted],
        }
        for part in resolved.config.parts()
        for option in options_of(type(part)).values()
    ]


def shown(value: Any) -> Any:
    """Return the value of an option without the secrets in it, for programs that print it on."""
    if isinstance(value, Mapping):
        return {name: shown(what) for name, what in value.items()}
    return masked(value) if isinstance(value, str) else value
