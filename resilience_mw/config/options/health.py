"""The options of the probes, and of what stands behind them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from resilience_mw.config.health_rules import NOTHING, Checks, Host, Name, Shedding
from resilience_mw.config.option import option
from resilience_mw.config.rules import Boolean, Integer, Many, Network, Number, OrNone, Path
from resilience_mw.config.section import Section, options_of


@dataclass(frozen=True, kw_only=True, repr=False)
class Health(Section, name="health"):
    """Where the probes are answered, and what readiness depends on.

    Example: ``Health(checks={"cache": "tcp://127.0.0.1:6379"}, port=9001)``
    """

    live_path: str = option("/livez", Path(), "Answers whether the process works at all.")
    ready_path: str = option("/readyz", Path(), "Answers whether it wants traffic.")
    startup_path: str = option("/startupz", Path(), "Answers whether it has started.")
    checks: Mapping[str, Any] = option(
        NOTHING,
        Checks(),
        "What readiness depends on, by name: a `Check`, a callable, or its text, such as"
        " `http://127.0.0.1:7001/status`, `tcp://host:port` or `module:attribute`.",
    )
    forward_path: str | None = option(
        None, OrNone(Path()), "Answers with the status that the next tier last gave. None = off."
    )
    forward_check: str | None = option(
        None,
        OrNone(Name()),
        "The check whose status `forward_path` gives; None = the first that asks an upstream.",
    )
    failure_status: int = option(
        503,
        Integer(minimum=400, maximum=599),
        "What `forward_path` answers while the next tier has no fresh answer.",
        unit="HTTP status",
    )
    port: int = option(
        0,
        Integer(maximum=65535),
        "Answer the probes on this port too, from a thread of their own; 0 = off.",
    )
    host: str = option("0.0.0.0", Host(), "The address that `port` is opened on.")
    stuck_after: float = option(
        30.0,
        Number(),
        "On `port`, fail liveness once the event loop has been stuck for longer; 0 = never.",
        unit="seconds",
    )
    expose_details: bool = option(
        False, Boolean(), "Name each check and its state to everybody who asks for details."
    )
    trusted: tuple[str, ...] = option(
        (), Many(Network(), "networks"), "Networks that may ask for details."
    )
    unready_when_shedding: float | tuple[float, float] | None = option(
        None,
        OrNone(Shedding()),
        "Not ready once this share of the requests has been refused over this many seconds"
        " (10 if left out), until half of it is. None = off.",
        unit="share, seconds",
    )

    def _relate(self) -> None:
        options = options_of(type(self))
        seen: dict[str, str] = {}
        for name in ("live_path", "ready_path", "startup_path", "forward_path"):
            path = getattr(self, name)
            if path is None:
                continue
            if path in seen:
                other = seen[path]
                raise options[name].error(f"must differ from {options[other].dotted}", path, other)
            seen[path] = name
