"""The options as keywords of the named middlewares, so that type checkers and editors know them.

A test holds these to the sections in `options`, name by name and type by type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypedDict


class LimitKeywords(TypedDict, total=False):
    """The options of `Limit`."""

    max_concurrent_requests: int
    exempt: tuple[str, ...]


class BackpressureKeywords(TypedDict, total=False):
    """The options of `Backpressure`."""

    enabled: bool
    law: Literal["adaptive", "aimd"]
    initial_limit: int
    min_limit: int
    max_limit: int
    elu_max: float
    sample_window: float
    smoothing_factor: float
    queue_size: int
    queue_timeout: float
    exempt: tuple[str, ...]
    max_wait: float
    trusted_proxies: tuple[str, ...]
    priority: Callable[[Any], str | None] | str | None
    user: Callable[[Any], object] | None
    dry_run: bool


class DeadlineKeywords(TypedDict, total=False):
    """The options of `Deadline`."""

    receive_timeout: float
    timeout: float | None
    header: str | None


class HealthKeywords(TypedDict, total=False):
    """The options of `Health`."""

    live_path: str
    ready_path: str
    startup_path: str
    checks: Mapping[str, Any]
    forward_path: str | None
    forward_check: str | None
    failure_status: int
    port: int
    host: str
    stuck_after: float
    expose_details: bool
    trusted: tuple[str, ...]
    unready_when_shedding: float | tuple[float, float] | None
