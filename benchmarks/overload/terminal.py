"""What the person sees who waits for it."""

from __future__ import annotations

import math
import time
from datetime import timedelta

from benchmarks.load.summary import human
from benchmarks.overload.base import Base
from benchmarks.overload.cell import Result
from benchmarks.overload.drills import Drilled
from benchmarks.overload.goals import drill_goals, share
from benchmarks.overload.meter import MAX_FOREIGN
from benchmarks.overload.protections import OURS

# How many of the last measurements tell how long the next will take.
RECENT = 30


class Terminal:
    """A line for each measurement, with the time that is left."""

    def __init__(self, guess: float) -> None:
        """`guess` is how long one measurement takes, in seconds, until some have been made."""
        self._guess = guess
        self._total = 0
        self._durations: list[float] = []
        self._started = time.monotonic()

    def begin(self, total: int) -> None:
        """Say how much there is to do."""
        self._total = total
        print(f"{total} measurements, about {_clock(total * self._guess)}", flush=True)

    def took(self, seconds: float) -> None:
        """Note how long the last measurement took."""
        self._durations.append(seconds)

    def base(self, base: Base) -> None:
        """Show what a server can do."""
        where = f"{base.server} {base.workload} {base.loop} {base.connection}"
        print(
            f"      {where}: capacity {base.capacity:.0f}/s at {base.cpu_share:.0%} CPU, "
            f"s {base.service * 1e6:.0f} us, r {base.refusal * 1e6:.0f} us, "
            f"unloaded {human(base.unloaded)}"
            + (f"  ! {base.foreign_cpu:.0%} foreign CPU" if base.foreign_cpu > MAX_FOREIGN else ""),
            flush=True,
        )

    def cell(self, result: Result) -> None:
        """Show one cell."""
        flag = f"  ! {result.disturbed}" if result.disturbed else ""
        line = (
            f"in time {percent(share(result.in_time, result.best))} of G, "
            f"200s {human(result.p99)}, refused {percent(result.refused)} in "
            f"{human(result.refused_p99)}, unanswered {percent(result.unanswered)}"
        )
        self._line(str(result.cell), line + flag)

    def drill(self, drilled: Drilled) -> None:
        """Show one drill."""
        figures = ", ".join(f"{name} {value:.3g}" for name, value in drilled.measures.items())
        goals = drill_goals(drilled) if drilled.protection == OURS else []
        short = [f"{goal.name}: {goal.short}" for goal in goals if not goal.met]
        if drilled.foreign_cpu > MAX_FOREIGN:
            short.append(f"! {drilled.foreign_cpu:.0%} foreign CPU")
        self._line(str(drilled.drill), "; ".join([figures, *short]))

    def failed(self, step: str, error: Exception) -> None:
        """Show that a measurement could not be made."""
        self._line(step, f"NOT MEASURED: {error}")

    def _line(self, step: str, text: str) -> None:
        done = len(self._durations) + 1
        recent = self._durations[-RECENT:]
        each = sum(recent) / len(recent) if recent else self._guess
        left = _clock((self._total - done) * each)
        print(f"[{done}/{self._total}, {left} left] {step}: {text}", flush=True)


def percent(value: float) -> str:
    """A share for people."""
    return "-" if math.isnan(value) else f"{value * 100:.1f} %"


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
