"""Shares as the log has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..config.wording import one_line
from ..core.rollout import Share
from ..exceptions import ConfigError
from .stores.base import Store, StoreError, shown_percent


def shown(share: Share | None) -> str:
    """Return a share in words; ``None`` = no store has said anything of it."""
    if share is None:
        return "as in the code"
    return f"{shown_percent(share.percent)} %{', held' if share.held else ''}"


def in_force(rules: Mapping[str, Share], shares: Mapping[str, Share], store: str | None) -> str:
    """Return one line: which shares are in force, from where, and what they are in the code.

    Args:
        rules: the shares in the code.
        shares: those of the store.
        store: its name, or ``None``.
    """
    parts = []
    for rule, code in rules.items():
        share = shares.get(rule, code)
        differs = f" ({shown(code)} in the code)" if share != code else ""
        parts.append(f"{rule} {shown(share)}{differs}")
    others = [repr(rule) for rule in shares if rule not in rules]
    strange = f"; no rule of this app is called {', '.join(others)}" if others else ""
    source = "in the code" if store is None else f"in {store}"
    return f"rollout shares {source}: {'; '.join(parts)}{strange}"


def differences(
    rules: Mapping[str, Share], before: Mapping[str, Share], after: Mapping[str, Share]
) -> Iterator[str]:
    """Yield a line for each share that has changed.

    Of rules that the app does not have, only that they have turned up: somebody may have mistyped
    one of ours, or another app has the same store.

    Args:
        rules: those of the app; none = all are ours.
        before: the shares until now.
        after: the shares from now on.
    """
    for rule, share in after.items():
        was = before.get(rule)
        # That the store has been told what is in the code changes nothing.
        if share == (rules.get(rule) if was is None else was):
            continue
        if not rules or rule in rules:
            yield f"rollout rule {rule}: {shown(share)}, was {shown(was)}"
        elif was is None:
            yield f"rollout: {shown(share)} for {rule!r}, but no rule of this app is called so"


def reason(store: Store, error: Exception) -> str:
    """Return why a store cannot be used, on one line."""
    if isinstance(error, StoreError | ConfigError):
        return one_line(str(error), 300)
    # The text of a foreign exception may have an address with its password in it.
    return f"{store.name}: {type(error).__name__}"
