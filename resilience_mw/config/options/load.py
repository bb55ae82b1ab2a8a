"""The options that decide how much runs, and for how long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from resilience_mw.config.option import option
from resilience_mw.config.rules import (
    Boolean,
    Choice,
    HeaderName,
    HeaderOr,
    Integer,
    Many,
    Network,
    Number,
    Object,
    OrNone,
    Path,
)
from resilience_mw.config.section import Section, options_of

_SECONDS = Number()
_POSITIVE_SECONDS = Number(open=True)
_SHARE = Number(maximum=1.0, open=True)
_PATH_PREFIXES = Many(Path(), "path prefixes")


@dataclass(frozen=True, kw_only=True, repr=False)
class Limit(Section, name="limit"):
    """A fixed limit on requests in flight, refusing at once above it.

    Example: ``Limit(max_concurrent_requests=100, exempt=("/static/",))``
    """

    max_concurrent_requests: int = option(
        0,
        Integer(),
        "Refuse at once above it; 0 = off. Also the hard ceiling of the adaptive limit.",
        unit="requests",
        node="maxConcurrentRequests",
    )
    exempt: tuple[str, ...] = option(
        (), _PATH_PREFIXES, "Paths that start with one of these are neither counted nor refused."
    )


@dataclass(frozen=True, kw_only=True, repr=False)
class Backpressure(Section, name="backpressure"):
    """A limit that follows the load, with a bounded queue before it.

    Two defaults depend on other options: `initial_limit` on `max_limit`, `sample_window` on `law`.

    Example: ``Backpressure(law="aimd", max_limit=200, queue_size=50)``
    """

    enabled: bool = option(True, Boolean(), "Whether the limit follows the load.", node="enabled")
    law: Literal["adaptive", "aimd"] = option(
        "adaptive",
        Choice(("adaptive", "aimd")),
        "How the limit follows the load: our own law, or the Node system's, exactly.",
    )
    initial_limit: int = option(
        None,
        Integer(minimum=1),
        "Where the limit starts under `aimd`.",
        unit="requests",
        node="initialLimit",
        derive=lambda section: section.max_limit,
        derived="max_limit",
    )
    min_limit: int = option(
        1, Integer(minimum=1), "The limit never falls below it.", unit="requests", node="minLimit"
    )
    max_limit: int = option(
        1000,
        Integer(minimum=1),
        "The limit never rises above it.",
        unit="requests",
        node="maxLimit",
    )
    elu_max: float = option(
        0.95,
        _SHARE,
        "Event-loop utilization from which on the worker counts as overloaded.",
        unit="share of time",
        node="eluMax",
    )
    sample_window: float = option(
        None,
        Number(minimum=0.001),
        "How often the limit is set anew.",
        unit="seconds",
        node="sampleWindow",
        derive=lambda section: 1.0 if section.law == "aimd" else 0.1,
        derived="1.0 (aimd), 0.1 (adaptive)",
    )
    smoothing_factor: float = option(
        0.2,
        _SHARE,
        "Weight of the newest request in the reported latency; decides nothing.",
        unit="share",
        node="smoothingFactor",
    )
    queue_size: int = option(
        100,
        Integer(),
        "How many requests may wait for a free slot; 0 = none.",
        unit="requests",
        node="queueSize",
    )
    queue_timeout: float = option(
        5.0,
        _SECONDS,
        "The longest a request may wait for a slot; `adaptive` mostly lets it wait less: three"
        " times `max_wait` while calm, once while overloaded.",
        unit="seconds",
        node="queueTimeout",
    )
    exempt: tuple[str, ...] = option(
        (), _PATH_PREFIXES, "Paths that start with one of these need no slot and are never refused."
    )
    max_wait: float = option(
        0.1,
        _POSITIVE_SECONDS,
        "While overloaded, refuse a request that has already waited longer.",
        unit="seconds",
    )
    trusted_proxies: tuple[str, ...] = option(
        (),
        Many(Network(), "networks"),
        "Networks whose `X-Request-Start`, `X-Queue-Start` and priority header are believed.",
    )
    priority: Callable[[Any], str | None] | str | None = option(  # noqa: RUF009
        None,
        OrNone(HeaderOr("callable", callable)),
        "What tells critical, normal and sheddable requests apart: a callable, or the name of a"
        " header, which is believed from `trusted_proxies`, from anybody if there are none.",
    )
    user: Callable[[Any], object] | None = option(  # noqa: RUF009
        None,
        OrNone(Object("callable", callable)),
        "What tells users apart, so that one is refused wholly or not at all for a minute.",
        python_only=True,
    )
    dry_run: bool = option(
        False, Boolean(), "Decide and count, but refuse nothing and let nobody wait."
    )

    def _relate(self) -> None:
        options = options_of(type(self))
        for low, high in (
            ("min_limit", "max_limit"),
            ("min_limit", "initial_limit"),
            ("initial_limit", "max_limit"),
        ):
            value, bound = getattr(self, low), getattr(self, high)
            if value > bound:
                raise options[low].error(
                    f"must be <= {options[high].dotted} ({bound})", value, high
                )


@dataclass(frozen=True, kw_only=True, repr=False)
class Deadline(Section, name="deadline"):
    """How long receiving a request and answering it may take.

    Example: ``Deadline(timeout=10, header="X-Request-Timeout")``
    """

    receive_timeout: float = option(
        30.0,
        _SECONDS,
        "The whole request has been received, else 408 and close; 0 = off.",
        unit="seconds",
        node="requestTimeout",
    )
    timeout: float | None = option(
        30.0,
        OrNone(_POSITIVE_SECONDS),
        "The response has started, else 504; never cuts one that has. None = off.",
        unit="seconds",
    )
    header: str | None = option(
        None,
        OrNone(HeaderName()),
        "A trusted header that may shorten the deadline, never lengthen it.",
    )
