"""The same overload twice: at the bare app, then at the protected one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from benchmarks.apps import protection, work
from benchmarks.load import (
    Capacity,
    Load,
    Progress,
    Record,
    Summary,
    Target,
    closed_loop,
    open_loop,
    run,
    summarize,
)
from benchmarks.servers import Server
from examples.demo.handlers import Handler

OVERLOAD = 3
PATIENCE = 5.0
IN_TIME = 0.5


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two runs."""

    name: str
    records: list[Record]
    summary: Summary


@dataclass(frozen=True, slots=True)
class Contest:
    """Both runs; `capacity` is what the bare app can do, in requests a second."""

    handler: Handler
    capacity: float
    rate: float
    sides: tuple[Side, Side]


def contest(
    handler: Handler,
    *,
    protect: str,
    seconds: float,
    cpu: int | None,
    announce: Callable[[str], None],
    progress: Callable[[Progress], None],
) -> Contest:
    """Measure the capacity, then offer `OVERLOAD` times as much to each side.

    `protect` is how the second side is protected, in the words of `benchmarks.apps.protection`.
    """
    steps = str(work.calibrate())

    def launch(choice: str) -> Server:
        env = {protection.VARIABLE: choice, work.VARIABLE: steps}
        return handler.launch(handler.app, env=env, cpu=cpu)

    def overload(server: Server, name: str, rate: float) -> Side:
        load = Load.steady(rate, seconds, patience=PATIENCE)
        announce(name)
        records = run(open_loop(_target(server, handler), load, progress))
        # What is left waits for clients that have gone: a polite end would take as long again.
        server.kill()
        return Side(name, records, summarize(records, bound=IN_TIME, seconds=seconds))

    with launch("none") as server:
        announce("measuring the capacity")
        capacity = _capacity(server, handler, seconds=min(3.0, seconds)).rate
        rate = OVERLOAD * capacity
        announce(f"capacity {capacity:.0f} requests/s: offering {rate:.0f}/s for {seconds:g} s")
        bare = overload(server, "unprotected", rate)
    with launch(protect) as server:
        # Both sides start warm.
        _capacity(server, handler, seconds=1.0)
        guarded = overload(server, "protected", rate)
    return Contest(handler, capacity, rate, (bare, guarded))


def _capacity(server: Server, handler: Handler, *, seconds: float) -> Capacity:
    target = _target(server, handler)
    return run(closed_loop(target, connections=handler.clients, seconds=seconds, warm_up=0.5))


def _target(server: Server, handler: Handler) -> Target:
    return Target.parse(urlsplit(server.url)._replace(path=handler.path).geturl())
