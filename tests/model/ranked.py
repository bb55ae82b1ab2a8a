"""Overload by requests of three classes, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from resilience_mw.core import AdaptiveGate
from resilience_mw.core.laws import AIMD, Adaptive, Law
from resilience_mw.core.priority import PriorityGate
from resilience_mw.core.ranking import CLASSES, Ranking
from resilience_mw.testing import Load, Result, Worker, simulate
from tests.model.workloads import MAX_WAIT, WORKLOADS, Case

Classes = tuple[float, float]
"""How much of G is critical, and how much normal; the rest of the highest load is sheddable."""


@dataclass(frozen=True)
class Scenario:
    """A workload, and a load of three classes; the route of a request is its class."""

    case: Case
    steps: Sequence[tuple[float, float]]
    """Seconds, and rate in multiples of the capacity."""
    classes: Classes
    seed: int = 3
    limit: int | None = None
    """Run under `aimd` with this limit."""

    @property
    def worker(self) -> Worker:
        return Worker(**{"kind": self.case.kind, **WORKLOADS[self.case.name].worker})

    @property
    def capacity(self) -> float:
        handler = WORKLOADS[self.case.name].handler
        return self.worker.capacity(handler, self.case.new_connections)

    @property
    def highest(self) -> float:
        """The highest load in requests a second."""
        return self.capacity * max(factor for _, factor in self.steps)

    @property
    def most(self) -> float:
        """G at the highest load in requests a second."""
        handler = WORKLOADS[self.case.name].handler
        return self.worker.most(handler, self.highest, self.case.new_connections)

    def plain(self) -> Result:
        """Run it without ranks."""
        return self._run(AdaptiveGate(self._law, **self._options))

    def ranked(self, user: Callable[[Any], object] | None = None) -> tuple[Result, PriorityGate]:
        """Run it with ranks."""
        ranking = Ranking(lambda request: CLASSES[request.route], user)  # type: ignore[attr-defined]
        gate = PriorityGate(self._law, ranking, **self._options)
        return self._run(gate), gate

    def _run(self, gate: AdaptiveGate) -> Result:
        critical, normal = (share * self.most / self.highest for share in self.classes)
        normal = min(normal, 1.0 - critical)
        load = Load(
            steps=[(seconds, factor * self.capacity) for seconds, factor in self.steps],
            new_connections=self.case.new_connections,
            shares=(critical, normal, 1.0 - critical - normal),
            seed=self.seed,
        )
        return simulate([WORKLOADS[self.case.name].handler] * 3, load, self.worker, gate)

    @property
    def _law(self) -> Law:
        if self.limit is None:
            return Adaptive(max_wait=MAX_WAIT)
        return AIMD(initial_limit=self.limit, max_limit=self.limit)

    @property
    def _options(self) -> dict[str, Any]:
        threads = WORKLOADS[self.case.name].threads
        return {"max_queue": 0 if threads else 100, "random": lambda: 0.5}


def admitted(result: Result, route: int, begin: float, end: float) -> float:
    """Return the share of a class that was served."""
    summary = result.summary(begin, end, route=route)
    return summary.served / summary.offered
