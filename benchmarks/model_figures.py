"""What the pictures of the model have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from resilience_mw.testing import IN_TIME, Outcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GREEN, AMBER, RED, BLUE, GREY = "#1a7f37", "#bf8700", "#cf222e", "#0969da", "#57606a"


def canvas(
    rows: int, columns: int, height: float, *, width: float = 9.0
) -> tuple[Figure, Sequence[Sequence[Axes]]]:
    """Return an empty figure and its axes, by row and column."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    grid: Sequence[Sequence[Axes]] = figure.subplots(
        rows, columns, squeeze=False, sharex=True, sharey="row"
    ).tolist()
    for row in grid:
        for axes in row:
            axes.grid(alpha=0.25)
            axes.tick_params(labelsize=8)
    return figure, grid


def answers(axes: Axes, outcomes: Sequence[Outcome]) -> None:
    """Draw when each request was answered, and how."""
    kinds = ((200, GREEN, "200"), (503, AMBER, "503"), (0, RED, "client left"))
    for status, colour, label in kinds:
        chosen = [outcome for outcome in outcomes if outcome.status == status]
        axes.scatter(
            [outcome.arrived for outcome in chosen],
            [outcome.latency for outcome in chosen],
            s=3,
            color=colour,
            label=label,
            linewidths=0,
        )
    axes.axhline(IN_TIME, color=GREY, linewidth=0.8, linestyle="--")
    axes.set_yscale("log")
    axes.set_xlabel("seconds", fontsize=9)
