"""Which options can reach the guards of an app that protects itself."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

from ..config import Config, flags_in, options_of
from ..core.adaptive import AdaptiveGate
from ..core.deadline import DeadlinePolicy
from ..core.gate import Gate
from ..core.health import HealthPolicy
from ..core.priority import PriorityGate
from ..core.shadow import Shadow
from ..inside import is_ours, nodes_of, to_be_made
from .given import SECTIONS
from .wrap import guards_of

_BUILT: dict[type, str] = {
    HealthPolicy: "health",
    DeadlinePolicy: "deadline",
    Gate: "limit",
    AdaptiveGate: "backpressure",
    PriorityGate: "backpressure",
    Shadow: "backpressure",
}
"""Which section's options a policy is built of."""


def out_of_reach(app: Any, names: Iterable[str]) -> tuple[str, ...]:
    """Return those of some options that no guard in ``app`` takes, in order.

    Args:
        app: the app, imported; nobody will put a guard around it any more.
        names: dotted names; what is the runner's always counts.
    """
    reached = {"runner", *_sections(app)}
    return tuple(name for name in names if name.partition(".")[0] not in reached)


def without_effect(app: Any, given: Config | None = None) -> str:
    """Return, in one line, which flags of the command do not count for an app; empty = all do.

    Args:
        app: the app, which nobody is going to protect.
        given: what was handed to the runner itself, which cannot reach guards that stand already.
    """
    spelled = {
        option.dotted: option.flag
        for section in Config.sections().values()
        for option in options_of(section).values()
    }
    flags = flags_in(os.environ, Config.sections())
    lost = [spelled[name] for name in out_of_reach(app, flags)]
    lost += sorted(
        f"{name}, given to the runner,"
        for name in (given.given if given else ())
        if name not in flags and not name.startswith("runner.")
    )
    return f"without effect: {', '.join(lost)}: {why(app)}" if lost else ""


def why(app: Any) -> str:
    """Return why options do not count for an app, in words."""
    if guards_of(app) or any(_sections(app)):
        return "the app's own code protects it, and not by a guard that would take them"
    return "nothing protects the app, for runner.protect is false"


def _sections(app: Any) -> Iterator[str]:
    """Yield the sections whose options the guards of an app have resolved for themselves."""
    for node in nodes_of(app):
        for kind in (type(node), *(kind for kind, _ in to_be_made(node))):
            yield from _of_kind(kind)
    for guard in guards_of(app):
        kinds = [_BUILT[type(policy)] for policy in guard.policies if type(policy) in _BUILT]
        # protect() and the extension of Flask build all of them, the probes always; a middleware
        # is of one section, but may have taken the policies of others inside it.
        whole = "health" in kinds and type(guard).__name__ not in SECTIONS
        yield from Config.sections() if whole else kinds


def _of_kind(kind: type) -> Iterator[str]:
    if not is_ours(kind):
        return
    if kind.__name__ == "ResilienceMiddleware":
        yield from Config.sections()
    elif kind.__name__ in SECTIONS:
        yield SECTIONS[kind.__name__].section
