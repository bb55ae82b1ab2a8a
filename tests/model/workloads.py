"""The handlers of the goals, and how a law is run on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from resilience_mw.core import AdaptiveGate
from resilience_mw.core.laws import Adaptive
from resilience_mw.testing import (
    Handler,
    Load,
    Result,
    Worker,
    breathe,
    compute,
    pool,
    simulate,
    thread_compute,
    thread_wait,
    wait,
)

MAX_WAIT = 0.1


@dataclass(frozen=True)
class Workload:
    """A handler, where it runs, and how much later than alone it may answer."""

    handler: Handler
    worker: dict[str, Any]
    factor: float = 2.5

    @property
    def threads(self) -> bool:
        return self.worker.get("kind") == "threads"

    @property
    def bound(self) -> float:
        """Greatest p99 in seconds of those served while overloaded."""
        return self.factor * (MAX_WAIT + self.handler.alone)


WORKLOADS = {
    "compute": Workload(compute(0.010), {}, 1.3),
    "awaits": Workload((compute(0.001) + breathe()) * 10, {}),
    "io": Workload(compute(0.002) + wait(0.050) + compute(0.002), {}),
    "light io": Workload(compute(0.0005) + wait(0.005) + compute(0.0005), {}),
    "pool": Workload(compute(0.0005) + pool("db", 0.1) + compute(0.0005), {"pools": {"db": 10}}),
    "sync io": Workload(thread_wait(0.1), {}),
    "sync compute": Workload(thread_compute(0.010), {}),
    "wsgi compute": Workload(compute(0.010), {"kind": "threads"}),
    "wsgi io": Workload(compute(0.001) + wait(0.050) + compute(0.001), {"kind": "threads"}),
}


class Case(NamedTuple):
    """A workload on one kind of server."""

    name: str
    kind: str
    new_connections: bool

    def __str__(self) -> str:
        return f"{self.name}, {self.kind}, {'new' if self.new_connections else 'kept'}"


CASES = [
    Case(name, kind, new)
    for name, workload in WORKLOADS.items()
    for kind in (("threads",) if workload.threads else ("asyncio", "uvloop"))
    for new in (False, True)
]
KEPT = [case for case in CASES if not case.new_connections and case.kind != "uvloop"]


class Run(NamedTuple):
    """A result, and the most that could have been had."""

    result: Result
    worker: Worker
    law: Adaptive
    handler: Handler
    new_connections: bool

    def most(self, offered: float) -> float:
        """Return G for ``offered`` requests a second."""
        return self.worker.most(self.handler, offered, self.new_connections)


def run(case: Case, steps: Sequence[tuple[float, float]], *, seed: int = 3, **worker: Any) -> Run:
    """Drive the adaptive law; the rates of ``steps`` are multiples of the capacity."""
    workload = WORKLOADS[case.name]
    server = Worker(**{"kind": case.kind, **workload.worker, **worker})
    capacity = server.capacity(workload.handler, case.new_connections)
    load = Load(
        steps=[(seconds, factor * capacity) for seconds, factor in steps],
        new_connections=case.new_connections,
        seed=seed,
    )
    law = Adaptive(max_wait=MAX_WAIT)
    gate = AdaptiveGate(law, max_queue=0 if workload.threads else 100, random=lambda: 0.5)
    result = simulate(workload.handler, load, server, gate)
    return Run(result, server, law, workload.handler, case.new_connections)
