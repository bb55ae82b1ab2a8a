"""Let the adaptive gates of a guard sense the event loop they run in."""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import Sequence

from ..core.adaptive import AdaptiveGate
from ..core.laws import Senses
from ..signals.loop import LoopMeter, attach


class LoopSenses:
    """Attaches a meter to the loop while there is a gate that needs it."""

    def __init__(self, gates: Sequence[AdaptiveGate]) -> None:
        self._gates = gates
        self._meter: LoopMeter | None = None

    def attach(self, loop: AbstractEventLoop) -> None:
        """Measure ``loop``, which must be running, from now on."""
        self.detach()
        if not self._gates:
            return
        self._meter = meter = attach(loop)

        def sense(now: float) -> Senses:
            reading = meter.read(now)
            return Senses(reading.at, reading.busy, reading.turns)

        for gate in self._gates:
            gate.listen(sense)

    def detach(self) -> None:
        """Restore the loop."""
        if self._meter is not None:
            self._meter.detach()
            self._meter = None
