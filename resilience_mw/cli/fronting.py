"""What the exports for front proxies have in common: their arguments, and the plan they make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from resilience_mw.cli.loading import factory_option, load
from resilience_mw.cli.shares import called
from resilience_mw.core.rollout import Share
from resilience_mw.rollout.export import Plan, rollout_of
from resilience_mw.rollout.stores import Store, StoreError, open_store


def fronting_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the arguments: the app, the two stacks, the shares, and names in the output."""
    for add in reversed(
        (
            click.argument("app"),
            factory_option,
            click.option("--old", required=True, metavar="HOST:PORT", help="The old stack."),
            click.option("--new", required=True, metavar="HOST:PORT", help="The new stack."),
            click.option(
                "--store",
                metavar="URL",
                help="Where the shares are, if not where the app says; file:..., redis://...",
            ),
            click.option(
                "--server-name",
                metavar="NAME",
                help="Whose front proxy it is, in rules by server, if not the app's own.",
            ),
            click.option(
                "--any-server",
                is_flag=True,
                help="One file for all: each proxy draws by the name of its own host.",
            ),
            click.option(
                "--name",
                default="resilience",
                show_default=True,
                help="With which all names in the output begin.",
            ),
            click.option(
                "--listen",
                default="8080",
                show_default=True,
                metavar="[HOST:]PORT",
                help="Where the proxy listens.",
            ),
        )
    ):
        command = add(command)
    return command


def plan_of(
    app: str,
    *,
    factory: bool,
    old: str,
    new: str,
    store: str | None,
    server_name: str | None,
    any_server: bool,
    name: str,
) -> Plan:
    """Return what the front proxy of an app has to do.

    Args:
        app: ``module:attribute``.
        factory: whether that is a function which makes the app.
        old, new, server_name, name: as for `Plan`.
        store: where the shares are; ``None`` = where the app says.
        any_server: whether the file is for the proxies of all servers.

    Raises:
        ConfigError: the app has no roll-out, or an option is wrong.
        click.ClickException: the app or the shares cannot be read.
    """
    if any_server and server_name is not None:
        raise click.UsageError("--any-server and --server-name exclude each other")
    named = None if store is None else open_store(store)
    rollout = rollout_of(load(app, factory=factory))
    shares = rollout.shares
    sources = ["the shares are those that the app has now."]
    if kept := named or rollout.store:
        shares = _read(kept)
        names = [rule.name for rule in rollout.rules]
        left = [name for name in names if name not in shares]
        if named is not None and left == names:
            raise click.ClickException(
                f"no share of {', '.join(names)} in {kept.name if shares else called(kept)}"
            )
        sources = [f"the shares are those of {kept.name}."]
        if left:
            sources.append(f"Not in the store, and so as in the code: {', '.join(left)}.")
    if shares is None:
        raise click.ClickException(
            "the app does not know its shares yet; name their store with --store"
        )
    return Plan(
        rollout.rules,
        shares,
        old,
        new,
        None if any_server else server_name or rollout.server_name,
        name,
        (
            f"The rules are those of {app}, {sources[0]}",
            *sources[1:],
            "Write it again after each change of them.",
            "Testers' headers and cookies are for the app alone, and so is the guard.",
        ),
    )


def _read(store: Store) -> Mapping[str, Share]:
    try:
        return store.load()
    except StoreError as error:
        raise click.ClickException(str(error)) from error
