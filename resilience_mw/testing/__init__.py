"""Drive any law or gate through overload in virtual time, deterministically and in milliseconds.

    >>> from resilience_mw.core import Gate
    >>> from resilience_mw.testing import Load, Worker, compute, simulate
    >>> load = Load(steps=[(10.0, 200.0)])  # twice what 10 ms of work a request allow
    >>> result = simulate(compute(0.010), load, Worker(kind="uvloop"), Gate(1))
    >>> result.summary().unanswered > 0  # a limit on concurrency cannot see this overload
    True

The model is one worker of a real server: an event loop with turns (``asyncio`` or ``uvloop``), the
framework's threads under one GIL, or a WSGI server's threads; its costs; its queues; downstream
pools; clients that send whatever happens and leave when they lose patience. The gate in it is the
real one.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..core.gate import Gate
from .clock import FakeClock
from .event_loop import EventLoop
from .handler import (
    Handler,
    answer,
    breathe,
    compute,
    pool,
    thread_compute,
    thread_wait,
    wait,
)
from .load import Load
from .result import IN_TIME, Outcome, Result, Sample, Summary
from .threads import Threads
from .worker import Worker

__all__ = [
    "IN_TIME",
    "FakeClock",
    "Handler",
    "Load",
    "Outcome",
    "Result",
    "Sample",
    "Summary",
    "Worker",
    "answer",
    "breathe",
    "compute",
    "pool",
    "simulate",
    "thread_compute",
    "thread_wait",
    "wait",
]


def simulate(
    handlers: Handler | Sequence[Handler],
    load: Load,
    worker: Worker | None = None,
    gate: Gate | None = None,
) -> Result:
    """Send ``load`` to ``worker`` and return what happened to each request.

    Args:
        handlers: what a request does; several are chosen from by ``load.shares``.
        load: the clients.
        worker: the server; by default one asyncio worker.
        gate: decides about each request; ``None`` lets all pass. An `AdaptiveGate` senses the
            model as it would sense a server. Do not use a gate twice: its time would run back.

    Raises:
        ValueError: there is not one share for each handler.
    """
    worker = Worker() if worker is None else worker
    several = [handlers] if isinstance(handlers, Handler) else list(handlers)
    if len(several) != len(load.shares):
        raise ValueError(
            f"load.shares must have one entry for each handler, got {len(load.shares)} "
            f"for {len(several)}"
        )
    kind = Threads if worker.kind == "threads" else EventLoop
    return kind(worker, load, several, gate).run()
