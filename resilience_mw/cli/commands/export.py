"""`resilience-mw export`: the same numbers and rules, for whoever stands in front of the app."""

from __future__ import annotations

import click

from resilience_mw.cli import exports
from resilience_mw.cli.group import ModuleGroup


@click.group("export", cls=ModuleGroup, package=exports, what="export")
def command() -> None:
    """Write the options for an orchestrator or a proxy, so that nobody copies numbers by hand."""
