"""Listeners in this process, which end with their test."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from benchmarks.process import HOST, free_port
from resilience_mw.config import Health
from resilience_mw.core.health import HealthPolicy
from resilience_mw.core.lifecycle import Lifecycle, State
from resilience_mw.health.listener import OutOfBand

from .probing import Port, until

Opened = tuple[Port, OutOfBand]


@pytest.fixture
def opened() -> Iterator[Callable[..., Opened]]:
    """Open a listener for an app that is ready: ``port, apart = opened(stuck_after=1)``."""
    made: list[Opened] = []

    def make(policy: HealthPolicy | None = None, port: int = 0, **options: object) -> Opened:
        where = Port(port or free_port())
        ready = HealthPolicy(lifecycle=Lifecycle(State.READY))
        health = Health(port=where.port, **{"host": HOST, **options})  # type: ignore[arg-type]
        apart = OutOfBand(policy or ready, health)
        apart.open()
        made.append((where, apart))
        return where, apart

    yield make
    for _, apart in made:
        apart.close()
    for where, _ in made:
        until(lambda port=where: port.ask() is None)  # type: ignore[misc]
