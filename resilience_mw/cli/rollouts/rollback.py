"""`resilience-mw rollout rollback`: back to the old stack, at once and without a question."""

from __future__ import annotations

import click

from resilience_mw.cli.shares import Form, author, report, warn_if_new, with_author, with_store
from resilience_mw.rollout.stores import Change, Store, Unanswered

TRIES = 5
"""Times to try where no answer comes: to be back twice is to be back."""


@click.command("rollback")
@click.argument("rule", required=False)
@with_author
@with_store
def command(store: Store, form: Form, rule: str | None, who: str | None, why: str) -> None:
    """Give all of RULE's traffic, or that of every rule, back to the old stack."""
    if rule is not None:
        # The change first: the rest can wait.
        changes = [_back(store, rule, author(who), why)]
        if changes[0].before is None:
            shares = dict(store.load())
            del shares[rule]
            warn_if_new(rule, shares)
    else:
        above = [name for name, share in store.load().items() if share.percent > 0]
        changes = [_back(store, name, author(who), why) for name in above]
    if not changes and form == "text":
        click.echo(f"every rule in {store.name} is at 0 already")
        return
    report(changes, form)


def _back(store: Store, rule: str, who: str, why: str) -> Change:
    for _ in range(TRIES - 1):
        try:
            return store.change(rule, 0.0, who=who, why=why)
        except Unanswered:
            continue
    return store.change(rule, 0.0, who=who, why=why)
