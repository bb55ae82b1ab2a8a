"""Keeps a WSGI or ASGI app standing when more arrives than it can serve.

    app = protect(app)

wraps any app in health probes, deadlines, a concurrency limit and adaptive backpressure.
"""

from __future__ import annotations

from .config import Backpressure, Config, Deadline, Health, Limit, Runner
from .context import remaining
from .core.rollout import RolloutGuard, RolloutRule
from .exceptions import ConfigError
from .protect import protect

__all__ = [
    "Backpressure",
    "Config",
    "ConfigError",
    "Deadline",
    "Health",
    "Limit",
    "RolloutGuard",
    "RolloutRule",
    "Runner",
    "protect",
    "remaining",
]
