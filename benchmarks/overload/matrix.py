"""What is measured, in which order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from benchmarks.overload.protections import OURS, PROTECTIONS
from benchmarks.overload.workloads import LOOPS, WORKLOADS

LOADS = (0.8, 2.0, 5.0, 10.0)
CONNECTIONS = ("kept", "new")
DRILLS = ("step", "pause", "idle", "probes")

# Whose step is drawn beside ours.
STEP_PEERS = (OURS, "none", "envoy")


class Cell(NamedTuple):
    """One run at one load, in multiples of the capacity."""

    workload: str
    load: float
    loop: str
    connection: str
    protection: str

    def __str__(self) -> str:
        where = f"{self.workload} {self.load:g}x {self.loop} {self.connection}"
        return f"{where} {self.protection}"


class Drill(NamedTuple):
    """One run whose load changes, or that something happens to."""

    name: str
    workload: str
    loop: str
    connection: str
    protection: str

    def __str__(self) -> str:
        return f"{self.name}: {self.workload} {self.loop} {self.connection} {self.protection}"


@dataclass(frozen=True, slots=True)
class Plan:
    """Cells in groups that share a base, each with all its protections; then drills."""

    cells: tuple[Cell, ...]
    drills: tuple[Drill, ...]


def full() -> Plan:
    """Everything. Peers take turns with us, and another begins each time."""
    cells: list[Cell] = []
    for workload in WORKLOADS.values():
        names = [
            name
            for name, protection in PROTECTIONS.items()
            if workload.interface in protection.interfaces
        ]
        for loop in LOOPS[workload.interface]:
            for connection in CONNECTIONS:
                for turn, load in enumerate(LOADS):
                    shift = turn % len(names)
                    cells += (
                        Cell(workload.name, load, loop, connection, name)
                        for name in names[shift:] + names[:shift]
                    )
    return Plan(tuple(cells), tuple(_all_drills()))


def quick() -> Plan:
    """A few cells that tell most, with a peer for each kind of work."""
    table = [
        ("compute", 5.0, "uvloop", "kept", (OURS, "envoy", "uvicorn-10")),
        ("io", 5.0, "asyncio", "new", ("envoy", OURS)),
        ("pool", 2.0, "uvloop", "kept", (OURS, "none")),
        ("thread", 2.0, "uvloop", "kept", ("none", OURS)),
        ("wsgi-compute", 5.0, "threads", "kept", (OURS, "none")),
    ]
    cells = [
        Cell(workload, load, loop, connection, name)
        for workload, load, loop, connection, names in table
        for name in names
    ]
    drills = [
        Drill("step", "compute", "uvloop", "kept", OURS),
        Drill("probes", "compute", "uvloop", "kept", OURS),
    ]
    return Plan(tuple(cells), tuple(drills))


def select(plan: Plan, only: dict[str, set[str]]) -> Plan:
    """Keep what matches each of the filters; `part` is `cells` or the name of a drill."""
    return Plan(
        tuple(cell for cell in plan.cells if _matches({**cell._asdict(), "part": "cells"}, only)),
        tuple(
            drill
            for drill in plan.drills
            if _matches({**drill._asdict(), "part": drill.name}, only)
        ),
    )


def parse_only(texts: Iterable[str]) -> dict[str, set[str]]:
    """Read `KEY=VALUE[,VALUE]` filters.

    Raises:
        ValueError: a key or value is not known.
    """
    known: dict[str, Sequence[str]] = {
        "workload": tuple(WORKLOADS),
        "load": tuple(f"{load:g}" for load in LOADS),
        "loop": tuple(loop for loops in LOOPS.values() for loop in loops),
        "connection": CONNECTIONS,
        "protection": tuple(PROTECTIONS),
        "part": ("cells", *DRILLS),
    }
    only: dict[str, set[str]] = {}
    for text in texts:
        key, _, values = text.partition("=")
        if key not in known:
            raise ValueError(f"--only must begin with one of {', '.join(known)}, got {text!r}")
        for value in values.split(","):
            if value not in known[key]:
                raise ValueError(f"--only {key} must be of {', '.join(known[key])}, got {value!r}")
            only.setdefault(key, set()).add(value)
    return only


def _matches(fields: dict[str, object], only: dict[str, set[str]]) -> bool:
    for key, values in only.items():
        field = fields.get(key)
        # Drills have no load to choose.
        if field is None and key == "load":
            continue
        text = f"{field:g}" if isinstance(field, float) else str(field)
        if text not in values:
            return False
    return True


def _all_drills() -> Iterable[Drill]:
    for workload in WORKLOADS.values():
        for loop in LOOPS[workload.interface]:
            for name in STEP_PEERS:
                yield Drill("step", workload.name, loop, "kept", name)
            yield Drill("pause", workload.name, loop, "kept", OURS)
            yield Drill("idle", workload.name, loop, "kept", OURS)
            for connection in CONNECTIONS:
                yield Drill("probes", workload.name, loop, connection, OURS)
