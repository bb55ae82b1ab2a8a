"""What the commands of `resilience-mw rollout` have in common: the store, who, and the words."""

from __future__ import annotations

import contextlib
import functools
import getpass
import json
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar

import click

from resilience_mw.config.wording import hint, likely, plain
from resilience_mw.core.rollout import Share
from resilience_mw.rollout.stores import Change, Store, StoreError, Unanswered, open_store
from resilience_mw.rollout.stores.base import shown_percent

VARIABLE = "RESILIENCE_ROLLOUT_STORE"

Form = Literal["text", "json"]

F = TypeVar("F", bound=Callable[..., Any])


def with_store(function: F) -> F:
    """Give a command its store and the form of its answer, and turn the store's errors to words."""

    @click.option("--store", "url", metavar="URL", help=f"The store. [variable: {VARIABLE}]")
    @click.option(
        "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True
    )
    @functools.wraps(function)
    def run(url: str | None, **arguments: Any) -> Any:
        group = click.get_current_context().parent
        above = None if group is None else group.params.get("url")
        named = url or above or os.environ.get(VARIABLE)
        if not named:
            example = "file:/etc/shop/rollout.toml"
            raise click.UsageError(f"name the store: --store {example}, or {VARIABLE}")
        store = open_store(named)
        try:
            return function(store=store, **arguments)
        except Unanswered as error:
            doubt = "; `rollout history` tells whether it was made" if "who" in arguments else ""
            raise click.ClickException(f"{error}{doubt}") from error
        except StoreError as error:
            raise click.ClickException(str(error)) from error
        finally:
            with contextlib.suppress(StoreError):
                store.close()

    decorated: Any = run
    result: F = decorated
    return result


def with_author(function: F) -> F:
    """Ask a command that changes something who does so and why."""
    function = click.option("--why", default="", help="The reason, for the history.")(function)
    return click.option("--who", help="Who. [default: user@host]")(function)


def author(given: str | None) -> str:
    """Return who is at the keyboard, the person behind `sudo` rather than root."""
    if given:
        return given
    try:
        user = os.environ.get("SUDO_USER") or getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container's user without a name
        user = str(getattr(os, "getuid", lambda: "unknown")())
    return f"{user}@{socket.gethostname()}"


def called(store: Store) -> str:
    """Return what a store without rules is called, and why it has none, if that can be told."""
    why = store.why_empty()
    return f"{store.name} ({why})" if why else store.name


def unknown_rule(
    store: Store, rule: str, shares: Mapping[str, Share] | None = None, *, writable: bool = True
) -> Exception:
    """Return the error that a store does not have a rule, with the name that was meant.

    Args:
        store: the store.
        rule: the name that was given.
        shares: those of the store, if they are known.
        writable: whether the command has ``--new``.
    """
    shares = store.load() if shares is None else shares
    where = store.name if shares else called(store)
    told = [f"{plain(rule)} is not in {where}: nothing was changed"]
    if shares:
        told.append(hint(likely(rule, shares), sorted(shares)).removeprefix("; "))
    if writable:
        told.append("--new writes it all the same")
    return click.ClickException("; ".join(told))


def report(changes: Sequence[Change], form: Form) -> None:
    """Write what was changed: one line or object each."""
    if form == "json":
        click.echo(as_json([record(change) for change in changes]))
        return
    for change in changes:
        click.echo(f"{plain(change.rule)}: {shown(change.before)} -> {shown(change.after)}")


def record(change: Change) -> dict[str, Any]:
    """Return a change with the names of its columns."""
    return {
        "time": moment(change.time),
        "who": change.who,
        "rule": change.rule,
        "from": None if change.before is None else change.before.percent,
        "to": change.after.percent,
        "held": change.after.held,
        "why": change.why,
    }


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows with aligned columns; what others wrote cannot steer the terminal."""
    safe = [[plain(cell) if not cell.isprintable() else cell for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*safe, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in safe
    )


def shown(share: Share | None) -> str:
    """Return a share as people read it."""
    if share is None:
        return "not in the store"
    return f"{shown_percent(share.percent)} %{', held' if share.held else ''}"


def moment(seconds: float) -> str:
    """Return a time as ISO 8601 in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def as_json(document: object) -> str:
    """Return a document for programs."""
    return json.dumps(document, indent=2)
