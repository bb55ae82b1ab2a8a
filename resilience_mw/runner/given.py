"""The options that an app's own code has given to the guards which protect it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..config import Backpressure, Config, Deadline, Health, Limit, Section, noted, options_of
from ..inside import is_ours, to_be_made

SECTIONS: dict[str, type[Section]] = {
    "HealthMiddleware": Health,
    "DeadlineMiddleware": Deadline,
    "ConcurrencyLimitMiddleware": Limit,
    "BackpressureMiddleware": Backpressure,
}
"""What the keyword arguments of each middleware are of."""


def given_in(nodes: Iterable[Any]) -> Config:
    """Return what was given in code to the guards among some objects, outermost first.

    Args:
        nodes: an app and what it wraps. Middlewares that an app of Starlette has been given, and
            will make when it starts, count as well.
    """
    found: dict[str, dict[str, Any]] = {}
    for node in nodes:
        for part in (*_late(node), *noted(node)):
            known = found.setdefault(part.section, {})
            for name in part.given:
                known.setdefault(name, getattr(part, name))
    sections = Config.sections()
    parts: dict[str, Any] = {name: sections[name](**values) for name, values in found.items()}
    return Config(**parts)


def over(outer: Config | None, inner: Config) -> Config:
    """Return what was given to either; ``outer`` wins."""
    if outer is None or not outer.given:
        return inner
    parts: dict[str, Any] = {}
    for name, kind in type(outer).sections().items():
        values = {
            option: getattr(part, option)
            for part in (getattr(inner, name, None), getattr(outer, name))
            if part is not None
            for option in options_of(kind)
            if option in part.given
        }
        parts[name] = kind(**values)
    return type(outer)(**parts)


def _late(node: Any) -> Iterator[Section]:
    for kind, options in to_be_made(node):
        section = SECTIONS.get(kind.__name__) if is_ours(kind) else None
        if section is not None:
            yield section(**options)
