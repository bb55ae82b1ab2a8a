"""`resilience-mw export nginx`: the rules of a roll-out for nginx."""

from __future__ import annotations

from typing import Any

import click

from resilience_mw.cli.fronting import fronting_options, plan_of
from resilience_mw.rollout.export import nginx


@click.command("nginx")
@fronting_options
def command(app: str, listen: str, **options: Any) -> None:
    """Print the split of a roll-out for nginx, to include in its `http` block.

    APP is the "module:app" with the RolloutMiddleware. Each of its rules becomes a location, a
    share a `split_clients` block; rules by server are decided here and now.
    """
    click.echo("\n".join(nginx(plan_of(app, **options), listen=listen)))
