"""Look into an app: what it wraps, and what that wraps, whatever framework put it there."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

_INNER = (
    "app",
    "new",
    "wsgi_app",
    "middleware_stack",
    "application",
    "application_mapping",
    "wrapped_app",
    "_middleware_chain",
    "get_response",
    "__wrapped__",
    "func",
    "awaitable",
)
"""Attributes of instances under which frameworks keep what they wrap: ours, Starlette, Flask,
Channels, Django, `functools`, asgiref."""

_MOST = 500
"""Objects looked at; an app that needs more is no app that anybody wrapped by hand."""


def nodes_of(app: Any) -> Iterator[Any]:
    """Yield ``app`` and what it wraps, nearest first. Nothing of theirs is called."""
    waiting, seen = [app], {id(app)}
    for node in waiting:
        yield node
        for inner in _inner(node):
            if id(inner) not in seen and len(waiting) < _MOST:
                seen.add(id(inner))
                waiting.append(inner)


def attributes_of(node: Any) -> Mapping[str, Any]:
    """The attributes an object has itself, without running a property or a proxy's look-up."""
    if node is None or isinstance(node, type | ModuleType):
        return {}
    try:
        own: Mapping[str, Any] = vars(node)
    except Exception:
        # No __dict__, or a proxy that stands for nothing outside a request.
        return {}
    return own


def to_be_made(node: Any) -> Iterator[tuple[type, Mapping[str, Any]]]:
    """Yield class and keyword arguments of the middlewares that a framework has been given.

    An app of Starlette makes them when it starts.
    """
    for entry in attributes_of(node).get("user_middleware") or ():
        kind = getattr(entry, "cls", None)
        if inspect.isclass(kind):
            yield kind, getattr(entry, "kwargs", {})


def is_ours(kind: type) -> bool:
    """Return whether a class is one of this package."""
    return kind.__module__.startswith("resilience_mw.")


def _inner(node: Any) -> Iterator[Any]:
    own = attributes_of(node)
    found = [own.get(name) for name in _INNER]
    if isinstance(node, functools.partial):
        found += (node.func, *node.args)
    elif inspect.ismethod(node):
        found.append(node.__self__)
    elif inspect.isfunction(node):
        found += _used_by(node)
    for inner in found:
        yield from inner.values() if isinstance(inner, dict) else (inner,)


def _used_by(function: Any) -> Iterator[Any]:
    """Yield the callables that a function written around an app closes over or names."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            continue  # not filled yet
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        if callable(value) and not isinstance(value, type | ModuleType):
            yield value
