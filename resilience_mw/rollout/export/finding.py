"""Find the roll-out in an app."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core.rollout import RolloutPolicy, RolloutRule, Share
from ...exceptions import ConfigError
from ...inside import attributes_of, nodes_of, to_be_made
from ..stores import Store, open_store


@dataclass(frozen=True, slots=True)
class Rollout:
    """What a `RolloutMiddleware` was told."""

    rules: Sequence[RolloutRule]
    server_name: str
    shares: Mapping[str, Share] | None
    """Those in force; ``None`` = its store has not been read."""
    store: Store | None = None
    """Where to read them, if the middleware is not made yet."""


def rollout_of(app: Any) -> Rollout:
    """Return the one roll-out that stands in ``app``.

    Raises:
        ConfigError: there is none, or there are several, or its store is none.
    """
    found = list(_rollouts(app))
    if len(found) != 1:
        count = "none" if not found else len(found)
        raise ConfigError(f"the app must have one RolloutMiddleware in it, got {count}")
    return found[0]


def _rollouts(app: Any) -> Iterator[Rollout]:
    for node in nodes_of(app):
        own = attributes_of(node)
        for policy in own.get("policies") or ():
            if isinstance(policy, RolloutPolicy):
                rules = [lane.rule for lane in policy.lanes]
                yield Rollout(rules, policy.server_name, policy.shares if policy.synced else None)
        # Starlette makes its middlewares when it starts.
        if own.get("middleware_stack") is None:
            for kind, options in to_be_made(node):
                if _is_rollout(kind):
                    yield _told(options)


def _is_rollout(kind: type) -> bool:
    return any(base.__name__ == "RolloutMiddleware" for base in kind.__mro__)


def _told(options: Mapping[str, Any]) -> Rollout:
    """Return what a middleware will be told that a framework has not made yet."""
    name = options.get("server_name") or socket.gethostname()
    url = options.get("store")
    if url is None:
        return Rollout(options["rules"], name, {})
    return Rollout(options["rules"], name, None, open_store(url))
