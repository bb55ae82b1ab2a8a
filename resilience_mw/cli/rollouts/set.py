"""`resilience-mw rollout set`: one rule's share, with a question before a large step up."""

from __future__ import annotations

import sys

import click

from resilience_mw.cli.shares import (
    Form,
    author,
    moment,
    report,
    shown,
    unknown_rule,
    with_author,
    with_store,
)
from resilience_mw.config.wording import plain
from resilience_mw.core.rollout import Share
from resilience_mw.rollout.stores import Overtaken, Store
from resilience_mw.rollout.stores.base import KEPT, checked_percent, checked_rule, shown_percent

LARGE_STEP = 25
"""Points; a larger step up is asked about. The way down is never: it may be an emergency."""


@click.command("set")
@click.argument("rule")
@click.argument("percent")
@click.option(
    "--yes", is_flag=True, help="Ask nothing: not before a large step, nor for a new rule."
)
@click.option("--new", is_flag=True, help="Write RULE though the store does not have it.")
@click.option("--clear", is_flag=True, help="End the guard's hold of the rule as well.")
@with_author
@with_store
def command(
    store: Store,
    form: Form,
    rule: str,
    percent: str,
    yes: bool,
    new: bool,
    clear: bool,
    who: str | None,
    why: str,
) -> None:
    """Give PERCENT of RULE's traffic to the new stack: 0 to 100, in steps of 0.01."""
    checked_rule(rule)
    share = _number(percent)
    while True:
        shares = store.load()
        before = shares.get(rule)
        if before is None and not (new or yes):
            raise unknown_rule(store, rule, shares)
        if before is not None and before.held and share and not clear:
            raise click.ClickException(_held(store, rule))
        if share - (before.percent if before else 0.0) > LARGE_STEP and not yes:
            _ask(rule, before, share)
        try:
            change = store.change(
                rule,
                share,
                held=False if clear else None,
                expected=before,
                who=author(who),
                why=why,
            )
        except Overtaken as error:
            # Look again, and ask again: the step may have become a large one.
            click.echo(str(error), err=True)
        else:
            return report([change], form)


def _number(text: str) -> float:
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        return checked_percent(text)
    return checked_percent(int(number) if number.is_integer() else number)


def _ask(rule: str, before: Share | None, share: float) -> None:
    question = f"{plain(rule)}: {shown(before)} -> {shown_percent(share)} %, in one step?"
    try:
        if click.confirm(question, err=True):
            return
    except click.Abort:
        if sys.stdin.isatty():
            raise
        click.echo(err=True)
        message = f"a step of over {LARGE_STEP} points needs --yes where nobody can answer"
        raise click.ClickException(message) from None
    raise click.Abort


def _held(store: Store, rule: str) -> str:
    since = next((c for c in store.history(KEPT) if c.rule == rule and c.after.held), None)
    told = "" if since is None else f" since {moment(since.time)} ({since.why or since.who})"
    name = plain(rule)
    return f"{name} is held at 0{told}; once it is mended: --clear, or `rollout clear {name}`"
