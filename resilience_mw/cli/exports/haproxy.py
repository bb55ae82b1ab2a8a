"""`resilience-mw export haproxy`: the rules of a roll-out for HAProxy."""

from __future__ import annotations

from typing import Any

import click

from resilience_mw.cli.fronting import fronting_options, plan_of
from resilience_mw.rollout.export import haproxy


@click.command("haproxy")
@fronting_options
def command(app: str, listen: str, **options: Any) -> None:
    """Print the split of a roll-out for HAProxy, as a file to give it beside its own.

    APP is the "module:app" with the RolloutMiddleware. A user's share goes by a hash of the cookie,
    header or address, so that each stays on one side; rules by server are decided here and now.
    """
    click.echo("\n".join(haproxy(plan_of(app, **options), listen=listen)))
