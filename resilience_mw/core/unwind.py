"""Tell policies how a request ended, whatever any of them does."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .exchange import Exchange


def unwind(
    exits: Iterable[Callable[[Exchange, float], None]], exchange: Exchange, now: float
) -> None:
    """Call every exit in order, even after one has raised; then raise what it raised.

    A slot that is not given back because another policy failed would be lost for good.
    """
    left = iter(exits)
    try:
        for exit in left:
            exit(exchange, now)
    except BaseException:
        unwind(left, exchange, now)
        raise
