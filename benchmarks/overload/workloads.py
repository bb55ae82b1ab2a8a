"""What is overloaded: eight kinds of work that queue in different places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Interface = Literal["asgi", "wsgi"]

APPS: dict[Interface, str] = {
    "asgi": "benchmarks.overload.asgi:app",
    "wsgi": "benchmarks.overload.wsgi:app",
}

LOOPS: dict[Interface, tuple[str, ...]] = {"asgi": ("asyncio", "uvloop"), "wsgi": ("threads",)}


@dataclass(frozen=True, slots=True)
class Workload:
    """One kind of work.

    Attributes:
        name: what options and results call it.
        title: what it is, for people.
        interface: the app's protocol.
        path: which path of the app does it.
        clients: how many at once find its capacity.
        awaits: whether other requests get a turn before one has ended. Without, the queue is
            in front of the handler and the goal for the 99th percentile is tighter.
    """

    name: str
    title: str
    interface: Interface
    path: str
    clients: int
    awaits: bool = True

    @property
    def p99_factor(self) -> float:
        """The goal for the p99 of the 200s, in multiples of `max_wait` + unloaded latency."""
        return 2.5 if self.awaits else 1.3


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("compute", "10 ms of CPU without an await", "asgi", "/compute", 8, awaits=False),
        Workload("awaits", "10 x 1 ms of CPU with awaits between", "asgi", "/awaits", 8),
        Workload("io", "2 ms of CPU, 50 ms of waiting, 2 ms of CPU", "asgi", "/io", 64),
        Workload("light", "5 ms of waiting, 0.3 ms of CPU", "asgi", "/light", 64),
        Workload("pool", "100 ms on one of 10 connections to a database", "asgi", "/pool", 20),
        Workload(
            "thread",
            "sync endpoint in the pool of 40 threads: 100 ms of waiting, 1 ms of CPU",
            "asgi",
            "/thread",
            60,
            awaits=False,
        ),
        Workload(
            "wsgi-compute",
            "WSGI on 8 threads: 10 ms of CPU",
            "wsgi",
            "/compute",
            16,
            awaits=False,
        ),
        Workload(
            "wsgi-io",
            "WSGI on 8 threads: 2 ms of CPU, 50 ms of waiting, 2 ms of CPU",
            "wsgi",
            "/io",
            16,
            awaits=False,
        ),
    )
}
