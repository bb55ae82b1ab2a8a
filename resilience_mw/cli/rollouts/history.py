"""`resilience-mw rollout history`: who changed what, when and why."""

from __future__ import annotations

import click

from resilience_mw.cli.shares import Form, as_json, called, moment, record, shown, table, with_store
from resilience_mw.rollout.stores import Store
from resilience_mw.rollout.stores.base import KEPT


@click.command("history")
@click.option(
    "--limit",
    type=click.IntRange(1, KEPT),
    default=20,
    show_default=True,
    help="Changes to show, the newest first.",
)
@with_store
def command(store: Store, limit: int, form: Form) -> None:
    """Show the last changes, newest first: time, who, rule, from, to and why."""
    changes = store.history(limit)
    if form == "json":
        click.echo(as_json([record(change) for change in changes]))
        return
    if not changes:
        click.echo(f"no changes in {store.name if store.load() else called(store)}")
        return
    rows = [("TIME", "WHO", "RULE", "FROM", "TO", "WHY")]
    rows += [
        (moment(c.time), c.who, c.rule, shown(c.before), shown(c.after), c.why) for c in changes
    ]
    click.echo(table(rows))
