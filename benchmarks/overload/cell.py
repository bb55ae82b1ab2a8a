"""One run at one load."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.load import Load, Phase, Record, Summary, Target, open_loop, run, summarize
from benchmarks.overload.base import Base
from benchmarks.overload.matrix import Cell
from benchmarks.overload.meter import MAX_FOREIGN, Meter, Usage
from benchmarks.overload.protections import PROTECTIONS, Machine, Serving, serving
from benchmarks.overload.theory import best_goodput
from benchmarks.overload.workloads import WORKLOADS

IN_TIME = 0.5
WARM_UP = 0.5

# Seconds of the load after which its beginning is no longer in what clients see.
SETTLING = 2.0

# What the generator is known to keep up with, in requests a second.
MAX_RATE = {"kept": 9_000.0, "new": 3_000.0}

# Our own lateness, in seconds, beyond which a run is disturbed.
MAX_LAG = 0.02


@dataclass(frozen=True, slots=True)
class Pace:
    """How long things take, in seconds.

    Attributes:
        seconds: of load in a cell,
        warm_up: after so many at half the capacity.
        base: how long a capacity is measured.
        patience: until a client leaves.
        attempts: how often a disturbed run is made, in all.
    """

    seconds: float = 10.0
    warm_up: float = 2.0
    base: float = 4.0
    patience: float = 5.0
    attempts: int = 2


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one cell; rates a second, shares of 1, times in seconds.

    Attributes:
        offered: requests a second; less than `load` says if the generator could not do more.
        capacity, best: of this server in this run, and G of `theory`.
        in_time: 200s a second within half a second of their intended time.
        settled_p99, settled_refused_p99: of what was meant to be sent after the first `SETTLING`
            seconds of the load.
        other: answers that were neither 200 nor 503.
        disturbed: why the run is not to be trusted; empty if it is.
        attempts: how often it was made because of that; the best is kept.
        session: when the programme that measured it was started.
    """

    workload: str
    load: float
    loop: str
    connection: str
    protection: str
    server: str
    seconds: float
    offered: float
    capacity: float
    service: float
    refusal: float
    unloaded: float
    best: float
    in_time: float
    p50: float
    p99: float
    settled_p99: float
    refused: float
    refused_p99: float
    settled_refused_p99: float
    unanswered: float
    other: float
    server_cpu: float
    front_cpu: float
    generator_cpu: float
    foreign_cpu: float
    lag_p99: float
    disturbed: str
    attempts: int
    session: str

    @property
    def cell(self) -> Cell:
        """Which cell it is."""
        return Cell(self.workload, self.load, self.loop, self.connection, self.protection)


def measure_cell(machine: Machine, cell: Cell, base: Base, pace: Pace, session: str) -> Result:
    """Run a cell; again if it was disturbed, and keep the run that was least so."""
    tries: list[Result] = []
    while len(tries) < pace.attempts and (not tries or tries[-1].disturbed):
        tries.append(_measure(machine, cell, base, pace, session))
    return replace(min(tries, key=_disturbance), attempts=len(tries))


def rate_of(cell: Cell, base: Base) -> float:
    """Requests a second to offer: never more than the generator can do."""
    return min(cell.load * base.capacity, MAX_RATE[cell.connection])


def after(records: Sequence[Record], begin: float) -> list[Record]:
    """The records from `begin` on, with intended times counted from there."""
    rest = [record for record in records if record.intended >= begin]
    for record in rest:
        record.intended -= begin
    return rest


def _measure(machine: Machine, cell: Cell, base: Base, pace: Pace, session: str) -> Result:
    protection = PROTECTIONS[cell.protection]
    workload = WORKLOADS[cell.workload]
    rate = rate_of(cell, base)
    load = Load(
        phases=(Phase(WARM_UP * base.capacity, pace.warm_up), Phase(rate, pace.seconds)),
        patience=pace.patience,
        reuse=cell.connection == "kept",
    )
    with serving(
        machine,
        workload.interface,
        cell.loop,
        server=protection.server(workload.interface),
        wrap=protection.wrap,
        args=protection.args,
        runner=protection.runner,
        front=protection.front,
    ) as running:
        target = running.target(workload.path)
        records, usage = run(_metered(machine, running, target, load, pace))
        output = running.server.output()
    loaded = after(records, pace.warm_up)
    summary = summarize(loaded, bound=IN_TIME, seconds=pace.seconds)
    settled = summarize(after(loaded, SETTLING), bound=IN_TIME)
    total = max(1, summary.offered)
    answered = summary.answered + summary.refused + summary.unanswered
    return Result(
        **cell._asdict(),
        server=base.server,
        seconds=pace.seconds,
        offered=rate,
        capacity=base.capacity,
        service=base.service,
        refusal=base.refusal,
        unloaded=base.unloaded,
        best=best_goodput(rate, base.capacity, base.service, base.refusal),
        in_time=summary.in_time / pace.seconds,
        p50=summary.p50,
        p99=summary.p99,
        settled_p99=settled.p99,
        refused=summary.refused / total,
        refused_p99=summary.refused_p99,
        settled_refused_p99=settled.refused_p99,
        unanswered=summary.unanswered / total,
        other=(summary.offered - answered) / total,
        server_cpu=usage.server,
        front_cpu=usage.front,
        generator_cpu=usage.generator,
        foreign_cpu=usage.foreign,
        lag_p99=summary.lag_p99,
        disturbed=why_disturbed(summary, usage, output),
        attempts=1,
        session=session,
    )


def why_disturbed(summary: Summary, usage: Usage, output: str) -> str:
    """What makes a run doubtful, or an empty string; `output` is what the server has written."""
    reasons = []
    if usage.foreign > MAX_FOREIGN:
        reasons.append(f"{usage.foreign:.0%} foreign CPU")
    if summary.lag_p99 > MAX_LAG:
        reasons.append(f"generator late by {summary.lag_p99 * 1000:.0f} ms")
    if unsent := summary.outcomes.get("unsent", 0):
        reasons.append(f"{unsent} unsent")
    if summary.offered and not summary.answered + summary.refused:
        said = output.strip().splitlines()[-1:]
        reasons.append(f"nothing answered, the server said {said}")
    return ", ".join(reasons)


def _disturbance(result: Result) -> float:
    foreign = 0.0 if math.isnan(result.foreign_cpu) else result.foreign_cpu
    broken = "unsent" in result.disturbed or "nothing answered" in result.disturbed
    return foreign / MAX_FOREIGN + result.lag_p99 / MAX_LAG + 100 * broken


async def _metered(
    machine: Machine, running: Serving, target: Target, load: Load, pace: Pace
) -> tuple[list[Record], Usage]:
    meter = Meter(machine, running)
    sending = asyncio.ensure_future(open_loop(target, load))
    await asyncio.sleep(pace.warm_up)
    meter.start()
    await asyncio.sleep(pace.seconds)
    usage = meter.stop()
    return await sending, usage
