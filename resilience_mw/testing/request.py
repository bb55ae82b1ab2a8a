"""A request of the model, and the downstream pools it may need."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from ..core.exchange import Exchange
from .handler import Handler

KERNEL_TICK = 0.004
"""Seconds: the grain of ``tcpi_last_data_recv``."""

Callback = Callable[[Any], object]


class Request(Exchange):
    """A request on its way through the model."""

    position = 0
    hops = 0
    turn_began = 0.0
    gated = False

    def __init__(self, number: int, sent: float, route: int, handler: Handler, age: str) -> None:
        self.number = number
        self.sent = sent
        self.route = route
        self.handler = handler
        self.age = age

    @property
    def path(self) -> str:
        """A path of its own for each route."""
        return f"/{self.route}"

    @property
    def method(self) -> str:
        """Always GET."""
        return "GET"

    def header(self, name: str) -> str | None:
        """Return ``None``: there are no headers."""
        return None

    def waited(self, now: float) -> float:
        """Return the seconds since it was sent, as well as the worker can know."""
        true = now - self.sent
        if self.age == "tcp":
            return int(true / KERNEL_TICK) * KERNEL_TICK
        if self.age == "turn":
            return max(0.0, now - self.turn_began)
        return true if self.age == "exact" else 0.0


class Pool:
    """A downstream pool: so many connections, handed out in order of request."""

    def __init__(self, size: int) -> None:
        self.free = size
        self.waiting: deque[tuple[Request, float]] = deque()
