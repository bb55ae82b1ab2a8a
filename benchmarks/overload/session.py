"""Go through a plan, saving after each measurement."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.overload.base import Base, measure_base, measure_refusal
from benchmarks.overload.cell import Pace, measure_cell
from benchmarks.overload.drills import measure_drill
from benchmarks.overload.matrix import Cell, Drill, Plan
from benchmarks.overload.protections import PROTECTIONS, Machine
from benchmarks.overload.results import Results
from benchmarks.overload.terminal import Terminal
from benchmarks.overload.workloads import WORKLOADS, Interface
from benchmarks.process import ServerError


def in_blocks(plan: Plan) -> list[Cell | Drill]:
    """All of it, so that what shares a capacity measurement follows it closely."""
    blocks: dict[tuple[str, str, str], list[Cell | Drill]] = {}
    steps: tuple[Cell | Drill, ...] = (*plan.cells, *plan.drills)
    for step in steps:
        blocks.setdefault((step.workload, step.loop, step.connection), []).append(step)
    return [step for block in blocks.values() for step in block]


class Session:
    """One start of the programme.

    Bases are measured in every session anew, when first needed: what a server can do differs
    from one day to the next, and what it is compared with has to be of the same day.
    """

    def __init__(
        self,
        machine: Machine,
        pace: Pace,
        results: Results,
        path: Path,
        terminal: Terminal,
        *,
        deadline: float,
    ) -> None:
        """`deadline` is the `time.monotonic()` after which nothing more is begun."""
        self._machine = machine
        self._pace = pace
        self._results = results
        self._path = path
        self._terminal = terminal
        self._deadline = deadline
        self._name = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
        self._bases: dict[tuple[str, str, str, str], Base] = {}
        self._refusals: dict[tuple[Interface, str, str], float] = {}

    def run(self, plan: Plan) -> bool:
        """Measure all of it; false if the deadline came first, or something did not start."""
        steps = in_blocks(plan)
        complete = True
        self._terminal.begin(len(steps))
        for step in steps:
            if time.monotonic() >= self._deadline:
                return False
            begin = time.monotonic()
            complete &= self._attempt(step)
            self._results.save(self._path)
            self._terminal.took(time.monotonic() - begin)
        return complete

    def _attempt(self, step: Cell | Drill) -> bool:
        """One server that does not start must not cost what would come after it."""
        try:
            if isinstance(step, Cell):
                self._cell(step)
            else:
                self._drill(step)
        except (ServerError, OSError) as error:
            self._terminal.failed(str(step), error)
            return False
        return True

    def _cell(self, cell: Cell) -> None:
        base = self._base(cell)
        result = measure_cell(self._machine, cell, base, self._pace, self._name)
        self._results.cells[cell] = result
        self._terminal.cell(result)

    def _drill(self, drill: Drill) -> None:
        base = self._base(drill)
        drilled = measure_drill(self._machine, drill, base, self._pace, self._name)
        self._results.drills[drill] = drilled
        self._terminal.drill(drilled)

    def _base(self, step: Cell | Drill) -> Base:
        workload = WORKLOADS[step.workload]
        server = PROTECTIONS[step.protection].server(workload.interface)
        key = (server, step.workload, step.loop, step.connection)
        if key not in self._bases:
            base = measure_base(
                self._machine,
                server,
                workload,
                step.loop,
                step.connection,
                refusal=self._refusal(workload.interface, step.loop, step.connection),
                seconds=self._pace.base,
                attempts=2 * self._pace.attempts - 1,
            )
            self._bases[key] = base
            self._results.add_base(base)
            self._terminal.base(base)
        return self._bases[key]

    def _refusal(self, interface: Interface, loop: str, connection: str) -> float:
        key = (interface, loop, connection)
        if key not in self._refusals:
            self._refusals[key] = measure_refusal(
                self._machine, interface, loop, connection, seconds=self._pace.base
            )
        return self._refusals[key]
