"""`resilience-mw export kubernetes`: probes whose numbers fit the options."""

from __future__ import annotations

import json
import math
import textwrap

import click

from resilience_mw.cli.flags import option_flags
from resilience_mw.cli.handing import config_file_option, options_of_command
from resilience_mw.cli.helping import SectionedCommand
from resilience_mw.cli.loading import factory_option, load
from resilience_mw.cli.sources import in_force
from resilience_mw.config import Config, resolve
from resilience_mw.exceptions import ConfigError
from resilience_mw.interface import interface_of
from resilience_mw.runner.drain import MARGIN

SLOW_NODE = 5
"""Seconds of grace beyond what a stop takes, for a node that is busy."""


@click.command("kubernetes", cls=SectionedCommand)
@click.argument("app", metavar="[APP]", required=False)
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    default=8000,
    show_default=True,
    help="The port on which the app serves.",
)
@click.option("--container", default="app", show_default=True, help="The container's name.")
@click.option(
    "--start",
    type=click.IntRange(1),
    default=60,
    show_default=True,
    help="Seconds that the app may take to start.",
)
@factory_option
@config_file_option
@option_flags()
def command(
    app: str | None,
    port: int,
    container: str,
    start: int,
    factory: bool,
    config_file: str | None,
    flags: dict[str, str],
) -> None:
    """Print the probes for a pod, to paste under `spec.template.spec` or to use as a patch.

    Options come from flags, the environment, a file and, with APP ("package.module:app"), from its
    code and the settings of its framework, as for `resilience-mw check`.
    """
    with options_of_command(flags, config_file):
        config = _of_app(app, flags, factory) if app else resolve().config
    if config.health.port == port:
        raise ConfigError(f"health.port must differ from the port of the app, got {port} for both")
    told = "" if app else "No APP was named: what its code or its framework sets is not in here."
    lines = pod(config, port=port, container=container, start=start)
    click.echo("\n".join([*(_note(told) if told else ()), *lines]))


def _of_app(app: str, flags: dict[str, str], factory: bool) -> Config:
    loaded = load(app, factory=factory)
    gunicorn = interface_of(loaded) == "wsgi"
    resolved, idle = in_force(loaded, flags, {}, gunicorn=gunicorn)
    for name, why in idle:
        click.echo(f"resilience-mw: {name} has no effect here: {why}", err=True)
    return resolved.config


def pod(config: Config, *, port: int, container: str = "app", start: int = 60) -> list[str]:
    """Return the lines of a pod's part that says when it is ready, alive and gone.

    Args:
        config: the options in force.
        port: on which the app serves.
        container: its name.
        start: seconds that it may take to start.
    """
    runner, health = config.runner, config.health
    grace = math.ceil(runner.drain_delay + runner.shutdown_timeout + MARGIN) + SLOW_NODE
    apart = health.port > 0
    ports = ["ports:", f"  - {{name: http, containerPort: {port}}}"]
    if apart:
        ports.append(f"  - {{name: health, containerPort: {health.port}}}")
    blocks = [
        ports,
        [
            *_note(f"Until it succeeds, the other two are not asked: {start} s to start."),
            *_probe("startup", health.startup_path, apart, every=1, within=1, failures=start),
        ],
        [
            *_note(_readiness(config)),
            *_probe("readiness", health.ready_path, apart, every=1, within=1, failures=1),
        ],
        _liveness(config, apart),
    ]
    stop = (
        f"runner.drain_delay ({runner.drain_delay:g}) + runner.shutdown_timeout "
        f"({runner.shutdown_timeout:g}) + {MARGIN:g}, and {SLOW_NODE} for a busy node. No preStop "
        "sleep is needed: at SIGTERM the app turns not ready and goes on accepting by itself."
    )
    return [
        *_note(stop),
        f"terminationGracePeriodSeconds: {grace}",
        "containers:",
        f"  - name: {json.dumps(container)}",
        *(f"    {line}" for block in blocks for line in block),
    ]


def _readiness(config: Config) -> str:
    delay, host = config.runner.drain_delay, config.health.host
    told = "Asked each second, for it costs next to nothing and turns traffic away soonest."
    if delay < 2:
        told += (
            f" runner.drain_delay ({delay:g} s) is less than the 2 s that a failing probe may take:"
            " requests may still come when the app has stopped accepting."
        )
    if config.health.port and host in ("127.0.0.1", "::1", "localhost"):
        told += f" health.host is {host}: the kubelet, which asks from outside, cannot reach it."
    return told


def _liveness(config: Config, apart: bool) -> list[str]:
    path, stuck = config.health.live_path, config.health.stuck_after
    if not apart:
        told = (
            "Answered by the app's own loop or threads: under overload it may be late, hence the"
            " patience. With health.port it is answered apart from them."
        )
        return [*_note(told), *_probe("liveness", path, apart, every=10, within=5, failures=3)]
    told = "health.stuck_after is 0: fails only when the process itself is gone."
    if stuck:
        told = (
            f"Fails when the event loop has been stuck for health.stuck_after ({stuck:g} s), and"
            f" after about {stuck + 15:g} s the container is started anew."
        )
    return [*_note(told), *_probe("liveness", path, apart, every=5, within=2, failures=3)]


def _note(text: str) -> list[str]:
    return textwrap.wrap(text, 88, initial_indent="# ", subsequent_indent="# ")


def _probe(
    kind: str, path: str, apart: bool, *, every: int, within: int, failures: int
) -> list[str]:
    return [
        f"{kind}Probe:",
        f"  httpGet: {{path: {json.dumps(path)}, port: {'health' if apart else 'http'}}}",
        f"  periodSeconds: {every}",
        f"  timeoutSeconds: {within}",
        f"  failureThreshold: {failures}",
    ]
