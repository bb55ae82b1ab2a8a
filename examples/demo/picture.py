"""Latency over time, every request a dot."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.load import Record
from benchmarks.load.summary import human
from examples.demo.contest import IN_TIME, PATIENCE, Contest

ANSWERED, REFUSED, UNANSWERED = "#1a7f37", "#bf8700", "#cf222e"


def draw(result: Contest, path: Path) -> None:
    """Write the picture of both sides to `path`."""
    mpl.use("Agg")
    figure = Figure(figsize=(12, 5), layout="constrained")
    left, right = figure.subplots(1, 2, sharex=True, sharey=True)
    for axes, side in zip((left, right), result.sides, strict=True):
        _side(axes, side.records)
        summary = side.summary
        axes.set_title(
            f"{side.name}: {summary.in_time} in time, {summary.refused} refused, "
            f"{summary.unanswered} unanswered"
        )
    left.set_ylabel("latency, from the time the request was meant to be sent")
    left.set_ylim(0.0005, PATIENCE * 1.6)
    left.yaxis.set_major_formatter(lambda seconds, _: human(seconds))
    right.legend(loc="lower right", markerscale=4)
    figure.suptitle(
        f"{result.handler.title}: {result.rate:.0f} requests/s at a capacity of "
        f"{result.capacity:.0f}/s"
    )
    figure.savefig(path, dpi=100)


def _side(axes: Axes, records: list[Record]) -> None:
    groups = {
        "200": (ANSWERED, [r for r in records if r.outcome == 200]),
        "503": (REFUSED, [r for r in records if r.outcome == 503]),
        "no answer": (UNANSWERED, [r for r in records if not isinstance(r.outcome, int)]),
    }
    for label, (colour, group) in groups.items():
        axes.scatter(
            [record.intended for record in group],
            [record.latency for record in group],
            s=4,
            color=colour,
            label=label,
            linewidths=0,
        )
    axes.axhline(IN_TIME, color="#57606a", linewidth=0.8, linestyle="--")
    axes.set_yscale("log")
    axes.set_xlabel("seconds since the start")
    axes.grid(alpha=0.25)
