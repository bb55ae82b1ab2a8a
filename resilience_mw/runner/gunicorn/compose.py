"""Run two hooks in the place of one.

Gunicorn has one function a hook and checks how many positional arguments it takes, so that a
wrapper with `*args` would be rejected: there is one wrapper for each number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Hook = Callable[..., Any]

ARITY = {
    "nworkers_changed": 3,
    "on_starting": 1,
    "when_ready": 1,
    "pre_fork": 2,
    "post_worker_init": 1,
    "worker_exit": 2,
    "child_exit": 2,
    "on_exit": 1,
}
"""The hooks that we add to, and how many arguments Gunicorn passes to each."""


def compose(name: str, theirs: Hook | None, ours: Hook) -> Hook:
    """Return a hook that calls ``theirs``, then ``ours``.

    Theirs comes first: what it does to the server or the worker is then taken into account. What
    it raises is raised, as without us.

    Args:
        name: the hook's, one of `ARITY`.
        theirs: the user's, or Gunicorn's own, which does nothing; ``None`` = there is none.
        ours: what to do as well.
    """
    return ours if theirs is None else _WRAPPERS[ARITY[name]](theirs, ours)


def _of_one(theirs: Hook, ours: Hook) -> Hook:
    def hook(first: Any) -> None:
        theirs(first)
        ours(first)

    return hook


def _of_two(theirs: Hook, ours: Hook) -> Hook:
    def hook(first: Any, second: Any) -> None:
        theirs(first, second)
        ours(first, second)

    return hook


def _of_three(theirs: Hook, ours: Hook) -> Hook:
    def hook(first: Any, second: Any, third: Any) -> None:
        theirs(first, second, third)
        ours(first, second, third)

    return hook


_WRAPPERS = {1: _of_one, 2: _of_two, 3: _of_three}
