"""`resilience-mw export kubernetes`: probes whose numbers fit the options."""

from __future__ import annotations

import json
import math

import click

from resilience_mw.cli.flags import option_flags
from resilience_mw.cli.loading import load
from resilience_mw.config import Config, resolve
from resilience_mw.runner.drain import MARGIN
from resilience_mw.runner.inspecting import settings_of

SLOW_NODE = 5
"""Seconds of grace beyond what a stop takes, for a node that is busy."""


@click.command("kubernetes")
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
@option_flags()
def command(app: str | None, port: int, container: str, start: int, flags: dict[str, str]) -> None:
    """Print the probes for a pod, to paste under `spec.template.spec` or to use as a patch.

    Options come from flags, the environment and, with APP ("package.module:app"), the settings of
    its framework. What the app passes in code is not seen here: repeat it as a flag.
    """
    settings = settings_of(load(app)) if app else None
    config = resolve(flags=flags, settings=settings or None).config
    click.echo("\n".join(pod(config, port=port, container=container, start=start)))


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
            f"# Until it succeeds, the other two are not asked: {start} s to start.",
            *_probe("startup", health.startup_path, apart, every=1, within=1, failures=start),
        ],
        [
            *_readiness_notes(config),
            *_probe("readiness", health.ready_path, apart, every=1, within=1, failures=1),
        ],
        _liveness(config, apart),
    ]
    return [
        f"# runner.drain_delay ({runner.drain_delay:g}) + runner.shutdown_timeout "
        f"({runner.shutdown_timeout:g}) + {MARGIN:g}, and {SLOW_NODE} for a busy node. No preStop",
        "# sleep is needed: at SIGTERM the app turns not ready and goes on accepting by itself.",
        f"terminationGracePeriodSeconds: {grace}",
        "containers:",
        f"  - name: {json.dumps(container)}",
        *(f"    {line}" for block in blocks for line in block),
    ]


def _readiness_notes(config: Config) -> list[str]:
    delay = config.runner.drain_delay
    notes = ["# Asked each second, for it costs next to nothing and turns traffic away soonest."]
    if delay < 2:
        notes.append(
            f"# runner.drain_delay ({delay:g} s) is less than the 2 s that one failing probe may"
            " take: requests may still come when the app has stopped accepting."
        )
    return notes


def _liveness(config: Config, apart: bool) -> list[str]:
    health = config.health
    if not apart:
        return [
            "# Answered by the app's own threads: under overload it may be late, hence the patience"
            " (health.port answers apart from them).",
            *_probe("liveness", health.live_path, apart, every=10, within=5, failures=3),
        ]
    stuck = health.stuck_after
    notes = [
        f"# Fails when the event loop has been stuck for health.stuck_after ({stuck:g} s); killed"
        f" within {stuck + 3 * 5:g} s or so."
        if stuck
        else "# health.stuck_after is 0: fails only when the process itself is gone."
    ]
    return [*notes, *_probe("liveness", health.live_path, apart, every=5, within=2, failures=3)]


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
