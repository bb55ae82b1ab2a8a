"""`resilience-mw rollout show`: the share of each rule now."""

from __future__ import annotations

import click

from resilience_mw.cli.shares import Form, as_json, called, moment, record, shown, table, with_store
from resilience_mw.rollout.stores import Store
from resilience_mw.rollout.stores.base import KEPT


@click.command("show")
@with_store
def command(store: Store, form: Form) -> None:
    """Show the share of each rule, and its last change."""
    shares = store.load()
    last = {change.rule: change for change in reversed(store.history(KEPT))}
    if form == "json":
        click.echo(
            as_json(
                [
                    {
                        "rule": rule,
                        "percent": share.percent,
                        "held": share.held,
                        "changed": record(last[rule]) if rule in last else None,
                    }
                    for rule, share in sorted(shares.items())
                ]
            )
        )
        return
    if not shares:
        click.echo(f"no rules in {called(store)}")
        return
    rows = [("RULE", "SHARE", "LAST CHANGE", "WHO", "WHY")]
    for rule, share in sorted(shares.items()):
        change = last.get(rule)
        told = ("", "", "") if change is None else (moment(change.time), change.who, change.why)
        rows.append((rule, shown(share), *told))
    click.echo(table(rows))
