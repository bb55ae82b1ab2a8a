"""Send at the intended times, whatever the server does."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import NamedTuple

from benchmarks.load.arrivals import Phase, Spacing, intended_times
from benchmarks.load.connection import Pool
from benchmarks.load.record import Record
from benchmarks.load.target import Target

MAX_REQUESTS = 1_000_000
MAX_SECONDS = 1_200.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How much to send, and how.

    Attributes:
        phases: rates (requests a second) and how long each holds (seconds).
        spacing: `constant` or `poisson` arrivals.
        patience: seconds from the intended time after which the client closes the connection.
        reuse: take idle connections again; else open one for every request.
        idle_timeout: seconds after which an unused connection is closed.
        seed: of the random gaps.
    """

    phases: tuple[Phase, ...]
    spacing: Spacing = "constant"
    patience: float = 5.0
    reuse: bool = True
    idle_timeout: float = 1.5
    seed: int = 1

    def __post_init__(self) -> None:
        for rate, seconds in self.phases:
            if rate <= 0 or seconds <= 0:
                raise ValueError(f"rate and seconds must be > 0, got {rate} for {seconds} s")
        if self.patience <= 0:
            raise ValueError(f"patience must be > 0, got {self.patience}")
        requests = sum(rate * seconds for rate, seconds in self.phases)
        if requests > MAX_REQUESTS or self.seconds > MAX_SECONDS:
            raise ValueError(
                f"a run must stay below {MAX_REQUESTS} requests and {MAX_SECONDS:.0f} s, "
                f"got {requests:.0f} in {self.seconds:.0f} s"
            )

    @classmethod
    def steady(cls, rate: float, seconds: float, **options: object) -> Load:
        """One rate from beginning to end."""
        return cls(phases=(Phase(rate, seconds),), **options)  # type: ignore[arg-type]

    @property
    def seconds(self) -> float:
        """How long requests are sent; the last may take `patience` longer to end."""
        return sum(phase.seconds for phase in self.phases)


class Progress(NamedTuple):
    """Counts since the start of the run."""

    elapsed: float
    sent: int
    ok: int
    refused: int
    unanswered: int
    waiting: int


async def open_loop(
    target: Target, load: Load, progress: Callable[[Progress], None] | None = None
) -> list[Record]:
    """Run the load to its end and return every request, in order of intended time.

    `progress` is called about once a second. Several runs may go side by side in one loop, for
    example a load and a probe.
    """
    run = _Run(target, load)
    watcher = asyncio.create_task(run.watch(progress))
    try:
        await run.send()
        await run.end()
    finally:
        watcher.cancel()
        run.pool.close()
    return run.records


class _Run:
    def __init__(self, target: Target, load: Load) -> None:
        self.records: list[Record] = []
        self.pool = Pool(target, self.done, reuse=load.reuse, idle_timeout=load.idle_timeout)
        self._load = load
        self._waiting: deque[Record] = deque()
        self._ended = 0
        self._ok = 0
        self._refused = 0
        self._unanswered = 0
        self._all_sent = False
        self._all_ended = asyncio.Event()
        # A first moment to settle in, so that the first requests are not late already.
        self._start = monotonic() + 0.01

    def done(self, record: Record) -> None:
        record.latency = self._elapsed() - record.intended
        self._ended += 1
        outcome = record.outcome
        if outcome == 200:
            self._ok += 1
        elif outcome == 503:
            self._refused += 1
        elif not isinstance(outcome, int):
            self._unanswered += 1
        if self._all_sent and self._ended == len(self.records):
            self._all_ended.set()

    async def send(self) -> None:
        """Send everything, each at its time or, when late, as soon as the loop gets round."""
        load = self._load
        now = -1.0
        for intended in intended_times(load.phases, load.spacing, load.seed):
            if intended > now:
                now = await self._reach(intended)
            record = Record(intended, now - intended)
            self.records.append(record)
            self._waiting.append(record)
            self.pool.submit(record)
        self._all_sent = True

    async def end(self) -> None:
        """Wait for what is still on its way; nothing takes longer than the patience."""
        if self._ended < len(self.records):
            await self._all_ended.wait()

    async def _reach(self, intended: float) -> float:
        """Let the loop turn once at least, and return the time when `intended` has come."""
        await asyncio.sleep(max(0.0, intended - self._elapsed()))
        # Timers of a millisecond's grain may fire early.
        while (now := self._elapsed()) < intended:  # noqa: ASYNC110
            await asyncio.sleep(intended - now)
        return now

    def _elapsed(self) -> float:
        return monotonic() - self._start

    async def watch(self, progress: Callable[[Progress], None] | None) -> None:
        reported = 0
        while True:
            await asyncio.sleep(0.01)
            elapsed = self._elapsed()
            self._leave(elapsed)
            self.pool.close_idle()
            if progress is not None and elapsed >= reported + 1:
                reported = int(elapsed)
                progress(self._progress(elapsed))

    def _leave(self, elapsed: float) -> None:
        """Give up what has waited too long; requests wait in order of their intended times."""
        waiting = self._waiting
        while waiting:
            record = waiting[0]
            if record.outcome is None:
                if elapsed - record.intended < self._load.patience:
                    return
                self.pool.give_up(record)
            waiting.popleft()

    def _progress(self, elapsed: float) -> Progress:
        waiting = len(self.records) - self._ended
        return Progress(
            elapsed, len(self.records), self._ok, self._refused, self._unanswered, waiting
        )
