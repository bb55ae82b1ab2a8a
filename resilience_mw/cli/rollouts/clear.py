"""`resilience-mw rollout clear`: a person lets a rule rise again that the guard had stopped."""

from __future__ import annotations

import click

from resilience_mw.cli.shares import (
    Form,
    author,
    report,
    unknown_rule,
    with_author,
    with_store,
)
from resilience_mw.config.wording import plain
from resilience_mw.rollout.stores import Store


@click.command("clear")
@click.argument("rule")
@with_author
@with_store
def command(store: Store, form: Form, rule: str, who: str | None, why: str) -> None:
    """End the guard's hold of RULE, which stays at 0 until somebody sets it."""
    change = store.clear_hold(rule, who=author(who), why=why)
    if change is None and rule not in (shares := store.load()):
        raise unknown_rule(store, rule, shares, writable=False)
    if change is None and form == "text":
        click.echo(f"{plain(rule)} was not held")
        return
    report([] if change is None else [change], form)
