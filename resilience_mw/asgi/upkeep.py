"""What a guard does between requests: tick, enforce deadlines, measure the loop."""

from __future__ import annotations

import logging
from asyncio import AbstractEventLoop, Task
from collections.abc import Callable, Sequence
from typing import Any

from ..core.adaptive import adaptive_gates
from ..core.deadline import DeadlinePolicy
from ..core.policy import Policy
from ..signals.running import running_loop
from .deadlines import Watch
from .exchange import ASGIExchange, current_task
from .pulse import Pulse
from .senses import LoopSenses

logger = logging.getLogger("resilience_mw")

STREAM_AFTER = 1.0
"""Seconds after its start from which a response that still goes on is no work but a stream."""


class Upkeep:
    """Keeps the running requests of a guard in view, on whichever loop it runs.

    Args:
        policies: those of the guard.
    """

    def __init__(self, policies: Sequence[Policy]) -> None:
        self.running: set[ASGIExchange] = set()
        """Requests whose app is being called; the guard adds and removes."""
        self.loop: AbstractEventLoop | None = None
        self._gates = adaptive_gates(policies)
        self._ticking = list(policies)
        deadlines = [policy for policy in policies if isinstance(policy, DeadlinePolicy)]
        self._watch = Watch(deadlines, self.running) if deadlines else None
        self.senses = LoopSenses(self._gates)
        self.pulse = Pulse(self.beat, self.senses.lag)

    def revive(self) -> Task[Any] | None:
        """Start what needs the running loop: once a loop, and again after a rest.

        Returns the running task; ``None`` where there is no asyncio. There, gates still count, but
        nobody enforces deadlines.
        """
        loop = running_loop()
        if loop is None:
            return None
        if loop is not self.loop:
            self.loop = loop
            for exchange in list(self.running):
                if exchange.task is not None and exchange.task.get_loop() is not loop:
                    self.running.discard(exchange)  # it died with its loop: let it be collected
            self.senses.attach(loop)
            self.pulse.stop()
        if self.pulse.resting:
            self.pulse.start(loop)
        return current_task(loop)

    def beat(self, now: float) -> bool:
        """Do what is due; returns whether anything is running or waiting."""
        if self._watch is not None:
            self._watch.beat(now)
        started_by = now - STREAM_AFTER
        for gate in self._gates:
            for exchange in self.running:
                if 0.0 < exchange.answered_at < started_by:
                    gate.stream(exchange)
        for policy in list(self._ticking):
            try:
                policy.tick(now)
            except Exception:
                self._ticking.remove(policy)
                logger.exception("%s is not ticked any more: its tick failed", policy)
        return bool(self.running) or any(gate.queued for gate in self._gates)

    def run(self, action: Callable[[], object]) -> None:
        """Call ``action`` where policies may be changed: in their loop, if it runs elsewhere."""
        if self.loop is None or self.loop is running_loop() or not self.loop.is_running():
            action()
        else:
            self.loop.call_soon_threadsafe(action)

    def close(self) -> None:
        """Stop ticking and remove our measurements from the loop."""
        self.pulse.stop()
        self.senses.detach()
        self.loop = None
