"""`resilience-mw rollout rollback`: back to the old stack, at once and without a question."""

from __future__ import annotations

from collections.abc import Mapping

import click

from resilience_mw.cli.shares import (
    Form,
    author,
    called,
    report,
    unknown_rule,
    with_author,
    with_store,
)
from resilience_mw.core.rollout import Share
from resilience_mw.rollout.stores import Change, Store, StoreError, Unanswered, UnknownRule

TRIES = 5
"""Times to try where no answer comes: to be back twice is to be back."""


@click.command("rollback")
@click.argument("rule", required=False)
@click.option(
    "--new", is_flag=True, help="Write RULE though the store does not have it, or is gone."
)
@with_author
@with_store
def command(
    store: Store, form: Form, rule: str | None, new: bool, who: str | None, why: str
) -> None:
    """Give all of RULE's traffic, or that of every rule, back to the old stack.

    Exit code 1 if nothing was found to take back. Where the store has vanished, running servers
    keep their last shares: --new writes it anew, with RULE at 0, and they follow.
    """
    if rule is not None:
        try:
            # The change first: the rest can wait.
            report([_back(store, rule, new, author(who), why)], form)
        except UnknownRule:
            raise unknown_rule(store, rule) from None
        return
    if new:
        raise click.UsageError("--new needs the name of a RULE")
    shares, unread = _load(store)
    if not shares and unread is None:
        raise click.ClickException(
            f"no rules in {called(store)}: nothing was taken back; to write one all the same: "
            "rollback RULE --new"
        )
    above = [name for name, share in shares.items() if share.percent > 0]
    if above or form == "json":
        report([_back(store, name, True, author(who), why) for name in above], form)
    elif unread is None:
        click.echo(f"every rule in {store.name} is at 0 already")
    if unread is not None:
        raise click.ClickException(f"{unread}: that one was not taken back")


def _load(store: Store) -> tuple[Mapping[str, Share], StoreError | None]:
    """Return the shares, and what is wrong with those that cannot be read."""
    try:
        return store.load(), None
    except StoreError as error:
        if not error.readable:
            raise
        # One that makes no sense must not keep all others on the new stack.
        return error.readable, error


def _back(store: Store, rule: str, new: bool, who: str, why: str) -> Change:
    for _ in range(TRIES - 1):
        try:
            return store.change(rule, 0.0, new=new, who=who, why=why)
        except Unanswered:
            continue
    return store.change(rule, 0.0, new=new, who=who, why=why)
