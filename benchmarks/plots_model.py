"""The pictures of docs/how-it-decides.md and the figures below them, from the model.

    python -m benchmarks.plots_model

Virtual time and fixed seeds: the same code draws the same pictures, on whatever machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.filling import ROOT, fill, table
from benchmarks.model_figures import AMBER, BLUE, GREEN, GREY, answers, canvas
from resilience_mw.core import AdaptiveGate, Exchange, Gate
from resilience_mw.core.laws import Adaptive
from resilience_mw.core.priority import PriorityGate
from resilience_mw.core.ranking import CLASSES, Ranking
from resilience_mw.testing import (
    Load,
    Result,
    Worker,
    breathe,
    compute,
    pool,
    simulate,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAGE = ROOT / "docs" / "how-it-decides.md"
PICTURES = ROOT / "docs" / "pictures"
DPI = 80

COMPUTE = compute(0.005)
AWAITS = (compute(0.001) + breathe()) * 10
POOL = compute(0.0005) + pool("database", 0.02) + compute(0.0005)
MIX = (0.1, 0.3, 0.6)
"""Shares of critical, normal and sheddable requests."""
LOADS = (0.5, 0.8, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0)


class Drawn(NamedTuple):
    """A picture, and the figures that belong below it."""

    figure: Figure
    figures: str


def adaptive() -> AdaptiveGate:
    """Return the default gate, with a random of its own."""
    return AdaptiveGate(Adaptive(), random=Random(1).random)


def onset(scale: float = 1.0) -> Drawn:
    """Twice the capacity for a handler that computes, behind three gates."""
    worker = Worker()
    before, during, after = 2 * scale, 6 * scale, 4 * scale
    rate = worker.capacity(COMPUTE)
    steps = [(before, 0.6 * rate), (during, 2 * rate), (after, 0.6 * rate)]
    gates: dict[str, Gate | None] = {
        "no protection": None,
        "at most 10 at once": Gate(10),
        "protect()": adaptive(),
    }
    figure, axes = canvas(1, 3, 2.9)
    rows = []
    most = worker.most(COMPUTE, 2 * rate)
    for column, (name, gate) in zip(axes[0], gates.items(), strict=True):
        result = simulate(COMPUTE, Load(steps=steps), worker, gate)
        answers(column, result.outcomes)
        column.axvspan(before, before + during, color=GREY, alpha=0.12, linewidth=0)
        column.set_title(name, fontsize=10)
        whole = result.summary(before, before + during)
        rows.append(
            (
                name,
                percent(whole.goodput / most),
                percent(whole.refused_share),
                percent(whole.unanswered / (whole.offered * during)),
                milliseconds(whole.p99),
                milliseconds(whole.refused_p99),
            )
        )
    axes[0][0].set_ylabel("seconds until the answer", fontsize=9)
    axes[0][2].legend(fontsize=7, markerscale=3, loc="upper right")
    head = (
        "during the overload",
        "200 in time, of what is possible",
        "refused",
        "unanswered",
        "p99 of the 200s",
        "p99 of the 503s",
    )
    return Drawn(figure, table(head, rows))


def step(scale: float = 1.0) -> Drawn:
    """Limit and latency while the load steps up and down, for a handler that awaits."""
    worker = Worker(kind="uvloop")
    rate = worker.capacity(AWAITS)
    seconds = 5 * scale
    steps = [(seconds, 0.6 * rate), (seconds, 2 * rate), (seconds, 0.6 * rate)]
    result = simulate(AWAITS, Load(steps=steps), worker, adaptive())
    figure, axes = canvas(2, 1, 4.6)
    upper, lower = axes[0][0], axes[1][0]
    answers(upper, result.outcomes)
    upper.set_ylabel("seconds until the answer", fontsize=9)
    upper.legend(fontsize=8, markerscale=3, loc="upper right")
    times = [sample.at for sample in result.samples]
    lower.plot(times, [s.limit for s in result.samples], color=BLUE, label="limit")
    lower.plot(times, [max(0.7, s.inflight) for s in result.samples], color=GREY, label="in flight")
    lower.set_yscale("log")
    lower.set_ylabel("requests", fontsize=9)
    lower.legend(fontsize=8, loc="upper right")
    for column in (upper, lower):
        column.axvspan(seconds, 2 * seconds, color=GREY, alpha=0.12, linewidth=0)
        column.set_xlim(0, 3 * seconds)
    upper.set_xlabel("")
    lower.set_xlabel("seconds", fontsize=9)
    limits = [sample.limit for sample in result.samples if 1.2 * seconds <= sample.at < 2 * seconds]
    rows = []
    for number, name in enumerate(("0.6 times the capacity", "twice", "0.6 times again")):
        part = result.summary(number * seconds, (number + 1) * seconds)
        most = worker.most(AWAITS, part.offered)
        rows.append(
            (
                name,
                percent(part.goodput / most),
                percent(part.refused_share),
                milliseconds(part.p50),
                milliseconds(part.p99),
            )
        )
    head = ("load", "200 in time, of what is possible", "refused", "p50 of the 200s", "p99")
    note = f"While it is overloaded the limit is between {min(limits)} and {max(limits)}."
    return Drawn(figure, f"{table(head, rows)}\n\n{note}")


def drift(scale: float = 1.0) -> Drawn:
    """A mild overload of a downstream pool for a quarter of an hour."""
    worker = Worker(kind="uvloop", pools={"database": 10})
    rate = worker.capacity(POOL)
    seconds = 900 * scale
    result = simulate(POOL, Load(steps=[(seconds, 1.3 * rate)]), worker, adaptive())
    figure, axes = canvas(2, 1, 4.0)
    upper, lower = axes[0][0], axes[1][0]
    slot = seconds / 90
    begins = [slot * number for number in range(1, 90)]
    parts = [result.summary(begin, begin + slot) for begin in begins]
    minutes = [begin / 60 for begin in begins]
    upper.plot(minutes, [1000 * part.p99 for part in parts], color=GREEN, label="p99 of the 200s")
    upper.plot(minutes, [1000 * part.p50 for part in parts], color=GREY, label="p50 of the 200s")
    upper.set_ylabel("milliseconds", fontsize=9)
    means = [mean_limit(result, begin, begin + slot) for begin in begins]
    lower.plot(minutes, means, color=BLUE, label="limit, mean of a slot")
    lower.set_ylabel("requests", fontsize=9)
    for column in (upper, lower):
        column.set_ylim(bottom=0)
        column.legend(fontsize=8, loc="lower right")
    lower.set_xlabel("minutes", fontsize=9)
    rows = []
    for name, begin, end in (("first third", slot, 30 * slot), ("last third", 60 * slot, seconds)):
        part = result.summary(begin, end)
        rows.append(
            (
                name,
                f"{mean_limit(result, begin, end):.0f}",
                percent(part.goodput / worker.most(POOL, part.offered)),
                percent(part.refused_share),
                milliseconds(part.p99),
            )
        )
    head = ("", "mean limit", "200 in time, of what is possible", "refused", "p99 of the 200s")
    return Drawn(figure, table(head, rows))


def priorities(scale: float = 1.0) -> Drawn:
    """What is served of each class, from half to five times the capacity."""
    worker = Worker()
    rate = worker.capacity(COMPUTE)
    seconds = 16 * scale
    served: list[list[float]] = []
    for load in LOADS:
        ranking = Ranking(lambda exchange: CLASSES[route(exchange)])
        gate = PriorityGate(Adaptive(), ranking, random=Random(1).random)
        offered = Load(steps=[(seconds, load * rate)], shares=MIX)
        result = simulate([COMPUTE] * len(CLASSES), offered, worker, gate)
        parts = [result.summary(seconds / 2, route=number) for number in range(len(CLASSES))]
        served.append([100 * part.served / part.offered for part in parts])
    figure, axes = canvas(1, 1, 3.0, width=5.6)
    column = axes[0][0]
    for name, colour, values in zip(
        CLASSES, (GREEN, BLUE, AMBER), zip(*served, strict=True), strict=True
    ):
        column.plot(LOADS, values, ".-", color=colour, label=name)
    column.set_xlabel("load, in multiples of the capacity", fontsize=9)
    column.set_ylabel("% served", fontsize=9)
    column.legend(fontsize=8)
    head = ("load", *(f"{name} served" for name in CLASSES))
    rows = [
        (f"{load:g} times the capacity", *(f"{share:.0f} %" for share in shares))
        for load, shares in zip(LOADS, served, strict=True)
        if load in (1.5, 2.0, 3.0, 5.0)
    ]
    return Drawn(figure, table(head, rows))


DRAWINGS: dict[str, Callable[[float], Drawn]] = {
    "onset": onset,
    "step": step,
    "drift": drift,
    "priorities": priorities,
}


def route(exchange: Exchange) -> int:
    """Return which handler a request of the model asks for: its path is the number."""
    return int(exchange.path[1:])


def mean_limit(result: Result, begin: float, end: float) -> float:
    """Return the mean limit in a span of time."""
    limits = [sample.limit for sample in result.samples if begin <= sample.at < end]
    return sum(limits) / len(limits)


def percent(share: float) -> str:
    """Return a share in words."""
    return f"{100 * share:.1f} %"


def milliseconds(seconds: float) -> str:
    """Return a latency in words; none were measured if it is 0."""
    return f"{1000 * seconds:.0f} ms" if seconds else "-"


def draw(directory: Path, scale: float = 1.0) -> dict[str, str]:
    """Write all pictures and return the figures that belong below them, by name.

    Args:
        directory: where to put the pictures.
        scale: of the times, 1 = as in the documentation.
    """
    directory.mkdir(parents=True, exist_ok=True)
    figures = {}
    for name, drawing in DRAWINGS.items():
        figure, figures[name] = drawing(scale)
        # Without the version of the library, which would make every picture another file.
        figure.savefig(directory / f"{name}.png", dpi=DPI, metadata={"Software": None})
    return figures


def main() -> None:
    """Draw, and fill the tables of the page."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "").parse_args()
    for name, figures in draw(PICTURES).items():
        fill(PAGE, name, figures)


if __name__ == "__main__":
    main()
