"""Let the adaptive gates of a guard sense the event loop they run in."""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import Sequence

from ..core.adaptive import AdaptiveGate
from ..core.laws import Senses
from ..signals.lag import Lag
from ..signals.loop import LoopMeter, attach
from ..signals.proxies import TrustedProxies
from ..signals.tcp import Listener, accept_queue, listening_sockets
from ..signals.threadpool import pool_waiting
from ..signals.waited import WaitedASGI, choose_asgi
from ..types import Scope, Send
from .pulse import PERIOD


class LoopSenses:
    """Measures the running loop while there is a gate that needs it.

    Args:
        gates: those of the guard.
    """

    def __init__(self, gates: Sequence[AdaptiveGate]) -> None:
        self._gates = gates
        networks = [network for gate in gates for network in gate.trusted_proxies]
        self._proxies = TrustedProxies(networks)
        self._meter: LoopMeter | None = None
        self._waited: WaitedASGI | None = None
        self._listeners: list[Listener] | None = None
        self._here: tuple[object, float | None] = (None, None)
        self.lag = Lag(PERIOD)

    def attach(self, loop: AbstractEventLoop) -> None:
        """Measure ``loop``, which must be running, from now on."""
        self.detach()
        if self._gates:
            self._meter = attach(loop)
            for gate in self._gates:
                gate.listen(self._sense, self._backlog)

    def detach(self) -> None:
        """Restore the loop, and choose anew at the next request."""
        if self._meter is not None:
            self._meter.detach()
            self._meter = None
        for listener in self._listeners or ():
            listener.close()
        self._waited = self._listeners = None

    def waited(self, scope: Scope, send: Send, task: object, now: float) -> float:
        """Return for how many seconds a request that ``task`` handles has waited by ``now``."""
        waited = self._waited
        if waited is None:
            waited = self._waited = self._choose(scope, send)
        if waited.source == "turn" and self._meter is not None:
            # A task that comes with another request in the same turn has not been back to the
            # loop in between, and so cannot have waited there.
            here, self._here = self._here, (task, self._meter.turn_started())
            if here == self._here:
                return 0.0
        return waited(scope, send, now)

    def sources(self) -> dict[str, str]:
        """Return what each signal is measured with, as far as it has been chosen."""
        chosen = {}
        if self._meter is not None:
            chosen["utilization"] = self._meter.source
        if self._waited is not None:
            chosen["waited"] = self._waited.source
        if self._listeners is not None:
            chosen["backlog"] = "tcp" if self._listeners else "none"
        return chosen

    def _choose(self, scope: Scope, send: Send) -> WaitedASGI:
        server = scope.get("server")
        self._listeners = listening_sockets(server[1] if server else None)
        return choose_asgi(scope, send, meter=self._meter, lag=self.lag, proxies=self._proxies)

    def _sense(self, now: float) -> Senses:
        if self._meter is None:
            return Senses(now, 0.0, 0)
        reading = self._meter.read(now)
        return Senses(reading.at, reading.busy, reading.turns, pool_waiting())

    def _backlog(self) -> int:
        depths = [accept_queue(listener) or 0 for listener in self._listeners or ()]
        return max(depths, default=0)
