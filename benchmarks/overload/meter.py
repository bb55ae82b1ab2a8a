"""Who used the CPUs during a run, and whether somebody else did."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import psutil

from benchmarks.overload.protections import Machine, Serving

# Another's share of the server's CPU beyond which a run is disturbed.
MAX_FOREIGN = 0.05


@dataclass(frozen=True, slots=True)
class Usage:
    """Shares of one CPU.

    Attributes:
        server: used by the server.
        front: used by the proxy, on the generator's CPU.
        generator: used by the generator; above a few thousand requests a second it spins.
        foreign: used by others on the server's CPU, or stolen from it; NaN if not pinned.
    """

    server: float
    front: float
    generator: float
    foreign: float


class _Reading(NamedTuple):
    at: float
    server: float
    front: float
    generator: float
    busy: float


class Meter:
    """Reads CPU times; cheap enough not to disturb a generator that runs in the same process."""

    def __init__(self, machine: Machine, running: Serving) -> None:
        self._cpu = machine.server_cpu
        # Listed once: searching all processes for children takes many milliseconds.
        self._server = [psutil.Process(running.server.pid), *running.server.workers()]
        self._front = [psutil.Process(running.front.pid)] if running.front else []
        # The generator may need every other descriptor that the system lets us have.
        self._spare = _Spare()
        self._reading = self._read()

    def start(self) -> None:
        """Measure from now."""
        self._reading = self._read()

    def stop(self) -> Usage:
        """Shares since the start."""
        before, after = self._reading, self._read()
        self._spare.close()
        seconds = max(1e-9, after.at - before.at)
        server, front, generator, busy = (
            (b - a) / seconds for a, b in zip(before[1:], after[1:], strict=True)
        )
        # In this order NaN stays NaN.
        return Usage(server, front, generator, max(busy - server, 0.0))

    def _read(self) -> _Reading:
        with self._spare.lent():
            return self._now()

    def _now(self) -> _Reading:
        busy = float("nan")
        if self._cpu is not None:
            times = psutil.cpu_times(percpu=True)[self._cpu]
            # Interrupts are left out: those of the load's own packets are nobody's time.
            busy = times.user + times.nice + times.system + getattr(times, "steal", 0.0)
        return _Reading(
            time.monotonic(), _used(self._server), _used(self._front), time.process_time(), busy
        )


class _Spare:
    """One file descriptor that is there when it is needed."""

    def __init__(self) -> None:
        self._descriptor = os.open(os.devnull, os.O_RDONLY)

    @contextlib.contextmanager
    def lent(self) -> Iterator[None]:
        """Something else can be opened meanwhile."""
        self.close()
        try:
            yield
        finally:
            # Nothing else of this process runs between, so it cannot fail.
            self._descriptor = os.open(os.devnull, os.O_RDONLY)

    def close(self) -> None:
        """Give it back."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _used(processes: list[psutil.Process]) -> float:
    total = 0.0
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system
    return total
