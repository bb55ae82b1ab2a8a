"""The rows that people read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.load.summary import human
from benchmarks.overload.cell import Result
from benchmarks.overload.goals import Goal, cell_goals, drill_goals, share
from benchmarks.overload.matrix import Drill
from benchmarks.overload.meter import MAX_FOREIGN
from benchmarks.overload.protections import OURS, PROTECTIONS
from benchmarks.overload.results import Results
from benchmarks.overload.terminal import percent
from benchmarks.overload.workloads import WORKLOADS

# A load this much below the one that was asked for is named beside it.
CAPPED = 0.99

HEADINGS = (
    "load",
    "protection",
    "offered/s",
    "in time/s",
    "of capacity",
    "of G",
    "p50",
    "p99 (settled)",
    "refused",
    "in p99 (settled)",
    "unanswered",
    "server CPU",
    "goals",
)


def row(result: Result, results: Results) -> tuple[str, ...]:
    """One line of a table."""
    return (
        load_text(result),
        result.protection,
        f"{result.offered:.0f}",
        f"{result.in_time:.0f}",
        percent(share(result.in_time, result.capacity)),
        percent(share(result.in_time, result.best)),
        human(result.p50),
        f"{human(result.p99)} ({human(result.settled_p99)})",
        percent(result.refused),
        f"{human(result.refused_p99)} ({human(result.settled_refused_p99)})",
        percent(result.unanswered),
        f"{result.server_cpu:.2f}",
        verdict(goals_of(result, results)) + doubts(result),
    )


def load_text(result: Result) -> str:
    """The load; if the generator could not do that much, what it did."""
    done = share(result.offered, result.capacity)
    return f"{result.load:g}x" + (f" ({done:.1f}x)" if done < CAPPED * result.load else "")


def doubts(result: Result) -> str:
    """Why a run is not to be trusted, to be appended."""
    again = ", twice" if result.attempts > 1 else ""
    return f" (disturbed{again}: {result.disturbed})" if result.disturbed else ""


def goals_of(result: Result, results: Results) -> list[Goal]:
    """The goals of one of our own cells; none for peers."""
    if result.protection != OURS:
        return []
    peers = [
        peer
        for name in PROTECTIONS
        if (peer := results.cells.get(result.cell._replace(protection=name)))
    ]
    return cell_goals(result, peers)


def all_goals(results: Results) -> Iterator[tuple[str, Goal]]:
    """Every goal that was measured, with what it is about."""
    for result in results.cells.values():
        for goal in goals_of(result, results):
            yield str(result.cell), goal
    for drill, drilled in results.drills.items():
        if drill.protection == OURS:
            for goal in drill_goals(drilled):
                yield str(drill), goal


def verdict(goals: Sequence[Goal]) -> str:
    """`met`, or what is short and by how much; empty without goals."""
    short = [f"{goal.name}: {goal.short}" for goal in goals if not goal.met]
    return "; ".join(short) or ("met" if goals else "")


def groups(results: Results) -> Iterator[tuple[str, list[Result]]]:
    """Results that share a workload, loop and kind of connection, with a title."""
    found: dict[tuple[str, str, str], list[Result]] = {}
    for result in results.cells.values():
        found.setdefault((result.workload, result.loop, result.connection), []).append(result)
    workloads, protections = list(WORKLOADS), list(PROTECTIONS)
    for workload, loop, connection in sorted(found, key=lambda key: (workloads.index(key[0]), key)):
        rows = sorted(
            found[workload, loop, connection],
            key=lambda result: (result.load, protections.index(result.protection)),
        )
        connections = "kept connections" if connection == "kept" else "a new connection each"
        yield f"{WORKLOADS[workload].title}, {loop}, {connections}", rows


def drills(results: Results) -> Iterator[tuple[Drill, str, str]]:
    """Each drill with its figures and its verdict."""
    workloads = list(WORKLOADS)
    for drill in sorted(
        results.drills, key=lambda drill: (drill.name, workloads.index(drill.workload), drill)
    ):
        drilled = results.drills[drill]
        figures = ", ".join(_figure(name, value) for name, value in drilled.measures.items())
        said = verdict(drill_goals(drilled) if drill.protection == OURS else [])
        if drilled.foreign_cpu > MAX_FOREIGN:
            said += f" (disturbed: {drilled.foreign_cpu:.0%} foreign CPU)"
        yield drill, figures, said


def print_table(results: Results) -> None:
    """All of it on the terminal."""
    for title, rows in groups(results):
        lines = [HEADINGS, *(row(result, results) for result in rows)]
        widths = [max(map(len, column)) for column in list(zip(*lines, strict=True))[:-1]]
        print(f"\n{title}")
        for line in lines:
            cells = [text.rjust(width) for text, width in zip(line[:-1], widths, strict=True)]
            print("  ".join([*cells, line[-1]]).rstrip())
    if results.drills:
        print("\nDrills")
    for drill, figures, said in drills(results):
        print(f"  {drill}: {figures}{'; ' if said else ''}{said}")


def _figure(name: str, value: float) -> str:
    if name.endswith("p99"):
        return f"{name} {human(value)}"
    if name in ("share", "refused", "refused_before", "unanswered"):
        return f"{name} {percent(value)}"
    return f"{name} {value:.3g}{' s' if name == 'last_refusal' else ''}"
