"""Runs whose load changes, or that something happens to."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.load import Load, Phase, Record, Summary, open_loop, run, summarize
from benchmarks.overload.base import Base
from benchmarks.overload.cell import IN_TIME, MAX_RATE, Pace, after
from benchmarks.overload.matrix import Drill
from benchmarks.overload.meter import MAX_FOREIGN, Meter
from benchmarks.overload.protections import PROTECTIONS, Machine, Serving, serving
from benchmarks.overload.theory import best_goodput
from benchmarks.overload.workloads import WORKLOADS, Workload

IDLE_CONNECTIONS = 50
SLOT = 0.5

# So that idle connections are ours to close.
KEEP_ALIVE = {"asgi": ("--timeout-keep-alive", "60"), "wsgi": ("--keep-alive", "60")}


@dataclass(frozen=True, slots=True)
class Drilled:
    """What became of one drill.

    Attributes:
        measures: figures by name; shares of 1 and seconds.
        series: time, 200s in time, refused and offered a second, every half second.
        foreign_cpu: share of the server's CPU that others used meanwhile.
        session: when the programme that measured it was started.
    """

    name: str
    workload: str
    loop: str
    connection: str
    protection: str
    measures: dict[str, float]
    series: list[list[float]]
    foreign_cpu: float
    session: str

    @property
    def drill(self) -> Drill:
        """Which drill it is."""
        return Drill(self.name, self.workload, self.loop, self.connection, self.protection)


@dataclass(frozen=True, slots=True)
class _Scene:
    drill: Drill
    base: Base
    pace: Pace
    running: Serving

    @property
    def workload(self) -> Workload:
        return WORKLOADS[self.drill.workload]

    @property
    def reuse(self) -> bool:
        return self.drill.connection == "kept"

    def rate(self, factor: float) -> float:
        return min(factor * self.base.capacity, MAX_RATE[self.drill.connection])

    async def load(self, *phases: Phase) -> list[Record]:
        load = Load(phases=phases, patience=self.pace.patience, reuse=self.reuse)
        return await open_loop(self.running.target(self.workload.path), load)

    async def ask(
        self, path: str, rate: float, seconds: float, *, reuse: bool = True
    ) -> list[Record]:
        return await open_loop(self.running.target(path), Load.steady(rate, seconds, reuse=reuse))


Measured = tuple[dict[str, float], list[list[float]]]


def measure_drill(machine: Machine, drill: Drill, base: Base, pace: Pace, session: str) -> Drilled:
    """Run one drill; again if others used the server's CPU, and keep the run with less of that."""
    tries: list[Drilled] = []
    while len(tries) < pace.attempts and (not tries or tries[-1].foreign_cpu > MAX_FOREIGN):
        tries.append(_measure(machine, drill, base, pace, session))
    return min(tries, key=lambda drilled: drilled.foreign_cpu)


def _measure(machine: Machine, drill: Drill, base: Base, pace: Pace, session: str) -> Drilled:
    protection = PROTECTIONS[drill.protection]
    interface = WORKLOADS[drill.workload].interface
    args = (*protection.args, *KEEP_ALIVE[interface]) if drill.name == "idle" else protection.args
    with serving(
        machine,
        interface,
        drill.loop,
        server=protection.server(interface),
        wrap=protection.wrap,
        args=args,
        runner=protection.runner,
        front=protection.front,
    ) as running:
        meter = Meter(machine, running)
        play = _PLAYS[drill.name]
        measures, series = run(play(_Scene(drill, base, pace, running)))
        usage = meter.stop()
    return Drilled(
        **drill._asdict(),
        measures=measures,
        series=series,
        foreign_cpu=usage.foreign,
        session=session,
    )


async def _step(scene: _Scene) -> Measured:
    """From 0.6x to 2x and back: what is served at once, and how long refusals go on after."""
    calm = scene.pace.seconds / 2
    busy = scene.pace.seconds
    high = scene.rate(2.0)
    records = await scene.load(
        Phase(scene.rate(0.6), calm), Phase(high, busy), Phase(scene.rate(0.6), calm)
    )
    series = _series(records, 2 * calm + busy)
    base = scene.base
    best = best_goodput(high, base.capacity, base.service, base.refusal)
    return {
        "share": step_share(records, calm, calm + busy, best),
        "last_refusal": last_refusal(records, calm + busy),
        "refused_before": _refused(record for record in records if record.intended < calm),
    }, series


async def _pause(scene: _Scene) -> Measured:
    """One pause of the whole process at 30 % load."""
    seconds = scene.pace.seconds
    warm_up = scene.pace.warm_up

    async def interrupt() -> None:
        await asyncio.sleep(warm_up + seconds / 3)
        await scene.ask("/pause", 1.0, 1.0)

    records, _ = await asyncio.gather(
        scene.load(Phase(scene.rate(0.3), warm_up + seconds)), interrupt()
    )
    summary = summarize(after(records, warm_up), bound=IN_TIME, seconds=seconds)
    return {"refused": _share(summary.refused, summary), "p99": summary.p99}, []


async def _idle(scene: _Scene) -> Measured:
    """Idle connections, probes, and two requests a second."""
    seconds = scene.pace.seconds
    target = scene.running.target("/hello")
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(IDLE_CONNECTIONS):
            reader, writer = await asyncio.open_connection(target.host, target.port)
            stack.callback(writer.close)
            writer.write(target.request(keep_alive=True))
            await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), timeout=5.0)
        live, ready, work = await asyncio.gather(
            scene.ask("/livez", 5.0, seconds),
            scene.ask("/readyz", 5.0, seconds),
            scene.load(Phase(2.0, seconds)),
        )
    failed = sum(record.outcome != 200 for record in (*live, *ready, *work))
    return {"not_200": float(failed)}, []


async def _probes(scene: _Scene) -> Measured:
    """`/livez` at 5x (threads: 3x), on a new connection each and on one that is kept."""
    seconds = scene.pace.seconds
    warm_up = scene.pace.warm_up
    factor = 3.0 if scene.drill.workload == "thread" else 5.0
    path = "/hello" if PROTECTIONS[scene.drill.protection].wrap == "none" else "/livez"

    async def probe(*, reuse: bool) -> list[Record]:
        await asyncio.sleep(warm_up)
        return await scene.ask(path, 10.0, seconds, reuse=reuse)

    load, new, kept = await asyncio.gather(
        scene.load(Phase(scene.rate(0.5), warm_up), Phase(scene.rate(factor), seconds)),
        probe(reuse=False),
        probe(reuse=True),
    )
    summaries = [summarize(records, bound=IN_TIME) for records in (new, kept)]
    summary = summarize(after(load, warm_up), bound=IN_TIME, seconds=seconds)
    return {
        "new_p99": summaries[0].p99,
        "kept_p99": summaries[1].p99,
        "probes_not_200": float(sum(each.offered - each.answered for each in summaries)),
        "unanswered": _share(summary.unanswered, summary),
    }, []


_PLAYS: dict[str, Callable[[_Scene], Coroutine[Any, Any, Measured]]] = {
    "step": _step,
    "pause": _pause,
    "idle": _idle,
    "probes": _probes,
}


def step_share(records: Sequence[Record], begin: float, end: float, best: float) -> float:
    """200s in time among those sent from `begin` to `end`, as a share of `best` a second."""
    in_time = sum(
        record.outcome == 200 and record.latency <= IN_TIME
        for record in records
        if begin <= record.intended < end
    )
    return in_time / (best * (end - begin)) if best else float("nan")


def last_refusal(records: Sequence[Record], end: float) -> float:
    """Seconds after `end` at which the last request was sent that was refused; 0 if none was."""
    late = [record.intended - end for record in records if record.outcome == 503]
    return max((0.0, *late))


def _refused(records: Any) -> float:
    outcomes = [record.outcome for record in records]
    return outcomes.count(503) / max(1, len(outcomes))


def _share(count: int, summary: Summary) -> float:
    return count / max(1, summary.offered)


def _series(records: Sequence[Record], seconds: float) -> list[list[float]]:
    summary = summarize(records, bound=IN_TIME, slot=SLOT, seconds=seconds)
    return [
        [slot.begin, slot.in_time / SLOT, slot.refused / SLOT, slot.offered / SLOT]
        for slot in summary.slots
    ]
