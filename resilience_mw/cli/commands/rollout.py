"""`resilience-mw rollout`: who gets the new stack, seen and changed from the command line."""

from __future__ import annotations

import click

from resilience_mw.cli import rollouts
from resilience_mw.cli.group import ModuleGroup


@click.group("rollout", cls=ModuleGroup, package=rollouts, what="rollout command")
@click.option("--store", "url", metavar="URL", help="As for each of the commands.")
def command(url: str | None) -> None:
    """See and change the share of each rule, on every server within a second.

    The shares are in a store, --store or RESILIENCE_ROLLOUT_STORE: file:/etc/shop/rollout.toml, or
    redis://127.0.0.1:6379/0. Exit code 0 = done, 1 = the store or the rule does not allow it,
    or there is none of that name, 2 = wrong usage.
    """
