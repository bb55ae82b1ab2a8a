"""A few small pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.overload.cell import Result
from benchmarks.overload.drills import Drilled
from benchmarks.overload.goals import share
from benchmarks.overload.matrix import LOADS
from benchmarks.overload.protections import OURS, PROTECTIONS
from benchmarks.overload.results import Results
from benchmarks.overload.workloads import WORKLOADS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = 4
DPI = 80

# Drawn where there is a choice: the loop on which overload hides best.
LOOPS = ("uvloop", "threads")

Panel = tuple[str, Callable[["Axes"], None]]


def write_plots(results: Results, directory: Path) -> list[Path]:
    """Draw what there is; without matplotlib, nothing."""
    try:
        import matplotlib
    except ImportError:
        return []
    matplotlib.use("Agg")
    written = []
    for connection in ("kept", "new"):
        panels = list(_goodput_panels(results, connection))
        path = directory / f"overload-{connection}.png"
        written += _draw(panels, path, "load, times capacity", "in time, % of capacity")
    written += _draw(
        list(_step_panels(results)), directory / "overload-step.png", "seconds", "in time a second"
    )
    return written


def _goodput_panels(results: Results, connection: str) -> Iterable[Panel]:
    for name, workload in WORKLOADS.items():
        chosen = [
            result
            for result in results.cells.values()
            if (result.workload, result.connection) == (name, connection) and result.loop in LOOPS
        ]
        if len({result.load for result in chosen}) > 1:
            yield workload.name, partial(_goodput, chosen)


def _goodput(results: list[Result], axes: Axes) -> None:
    for number, name in enumerate(PROTECTIONS):
        points = sorted(
            (result.load, 100 * share(result.in_time, result.capacity))
            for result in results
            if result.protection == name
        )
        if points:
            axes.plot(
                *zip(*points, strict=True), f"C{number}.-", label=name, linewidth=_width(name)
            )
    best = sorted(
        (result.load, 100 * share(result.best, result.capacity))
        for result in results
        if result.protection == OURS
    )
    if best:
        axes.plot(*zip(*best, strict=True), "k:", label="G")
    axes.set_xscale("log")
    axes.set_xticks(LOADS, [f"{load:g}" for load in LOADS])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)


def _step_panels(results: Results) -> Iterable[Panel]:
    for name in WORKLOADS:
        chosen = [
            drilled
            for drilled in results.drills.values()
            if (drilled.name, drilled.workload) == ("step", name) and drilled.loop in LOOPS
        ]
        if chosen:
            yield name, partial(_step, chosen)


def _step(drills: list[Drilled], axes: Axes) -> None:
    for number, name in enumerate(PROTECTIONS):
        for drilled in drills:
            if drilled.protection == name:
                times, in_time, _, offered = zip(*drilled.series, strict=True)
                axes.plot(times, in_time, f"C{number}", label=name, linewidth=_width(name))
                if name == OURS:
                    axes.plot(times, offered, "k:", label="offered")


def _width(name: str) -> float:
    return 2.0 if name == OURS else 1.0


def _draw(panels: list[Panel], path: Path, across: str, up: str) -> list[Path]:
    if not panels:
        path.unlink(missing_ok=True)
        return []
    from matplotlib import pyplot

    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    figure, grid = pyplot.subplots(
        rows, columns, figsize=(3.2 * columns, 2.6 * rows), squeeze=False, layout="constrained"
    )
    for axes in grid.flat[len(panels) :]:
        axes.remove()
    entries = {}
    for axes, (title, draw) in zip(grid.flat, panels, strict=False):
        axes.set_title(title, fontsize=10)
        draw(axes)
        entries.update(dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True)))
    figure.supxlabel(across, fontsize=9)
    figure.supylabel(up, fontsize=9)
    figure.legend(
        entries.values(), entries.keys(), loc="outside upper center", ncols=2 * columns, fontsize=8
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=DPI)
    pyplot.close(figure)
    return [path]
