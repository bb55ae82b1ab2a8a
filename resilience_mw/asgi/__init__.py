"""Middlewares for ASGI apps, and the guard they are made of."""

from __future__ import annotations

from .guard import Guard
from .middlewares import (
    BackpressureMiddleware,
    ConcurrencyLimitMiddleware,
    DeadlineMiddleware,
    HealthMiddleware,
)
from .rollout import RolloutMiddleware

__all__ = [
    "BackpressureMiddleware",
    "ConcurrencyLimitMiddleware",
    "DeadlineMiddleware",
    "Guard",
    "HealthMiddleware",
    "RolloutMiddleware",
]
