"""The server that is modelled: one process, its costs and its limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from .handler import Handler, Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """One worker process on one CPU. All costs are seconds of that CPU.

    Args:
        kind: ``asyncio`` reads every ready socket and accepts all connections in a turn;
            ``uvloop`` accepts one a turn; ``threads`` is a WSGI server with one queue.
        threads: threads of a WSGI server.
        accept: cost of taking a new connection.
        parse: cost of reading a request.
        serve: what server and framework add to a request that is served, half before, half after.
        refuse: cost of a refusal, on top of reading the request.
        enqueue: cost of letting a request wait in the gate's queue.
        turn: cost of a turn of the loop.
        tokens: threads of the framework's pool for sync endpoints of an event loop.
        pools: size of each downstream pool, by name.
        waited: how a request's waiting is known: ``tcp`` (to 4 ms), ``turn`` (start of the loop
            turn before), ``exact``, ``none``.
        pauses: ``(at, seconds)``: nothing runs from ``at`` (or the end of what runs then) on.
        stolen: share of the CPU that others take, 0 to 1.
        tick: seconds between two beats of the driver.
        seed: for drawn durations.
    """

    kind: Literal["asyncio", "uvloop", "threads"] = "asyncio"
    threads: int = 8
    accept: float = 0.000_06
    parse: float = 0.000_05
    serve: float = 0.000_1
    refuse: float = 0.000_05
    enqueue: float = 0.000_08
    turn: float = 0.000_01
    tokens: int = 40
    pools: Mapping[str, int] = field(default_factory=dict)
    waited: Literal["tcp", "turn", "exact", "none"] = "tcp"
    pauses: Sequence[tuple[float, float]] = ()
    stolen: float = 0.0
    tick: float = 0.025
    seed: int = 7

    def refusal(self, new_connections: bool) -> float:
        """Return r: seconds of CPU that one refusal takes in all."""
        return self._stretch(self.parse + self.refuse + self._connect(new_connections))

    def work(self, handler: Handler, new_connections: bool) -> float:
        """Return s: seconds of CPU that one served request takes in all."""
        connect = self._connect(new_connections)
        return self._stretch(self.parse + self.serve + connect + handler.cpu)

    def capacity(self, handler: Handler, new_connections: bool = False) -> float:
        """Return how many requests a second can be served when none needs refusing."""
        return min(1.0 / self.work(handler, new_connections), self._elsewhere(handler, 0.0, 0.0))

    def most(self, handler: Handler, offered: float, new_connections: bool = False) -> float:
        """Return G, the most that anyone can serve of ``offered`` requests a second.

        Refusing is work too. With x served and L offered, x s + (L - x) r <= 1, so

            G = (1 - L r) / (s - r)

        unless all can be served, or a pool or the threads allow less. On n threads, where one
        request takes h in all and a refusal r of a thread, it is (n - L r) / (h - r) likewise.
        """
        work, refusal = self.work(handler, new_connections), self.refusal(new_connections)
        cpu = max(0.0, (1.0 - offered * refusal) / (work - refusal))
        return min(offered, cpu, self._elsewhere(handler, offered, refusal))

    def _connect(self, new_connections: bool) -> float:
        if not new_connections:
            return 0.0
        return self.accept + (self.turn if self.kind == "uvloop" else 0.0)

    def _elsewhere(self, handler: Handler, offered: float, refusal: float) -> float:
        """Return the requests a second that pools and threads allow."""
        limits = [
            size / held
            for name, size in self.pools.items()
            if (held := handler.seconds(Kind.POOL, pool=name))
        ]
        if self.kind == "threads":
            occupied = handler.alone + self._stretch(self.parse + self.serve)
            limits.append((self.threads - offered * refusal) / (occupied - refusal))
        elif held := handler.seconds(Kind.THREAD_WAIT):
            limits.append(self.tokens / held)
        return max(0.0, min(limits, default=float("inf")))

    def _stretch(self, seconds: float) -> float:
        return seconds / (1.0 - self.stolen)
