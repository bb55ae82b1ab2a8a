"""How much a server can do: a fixed number of clients, each of which waits for its answer."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import NamedTuple

from benchmarks.load.connection import Pool
from benchmarks.load.record import Record
from benchmarks.load.summary import percentile
from benchmarks.load.target import Target


class Capacity(NamedTuple):
    """What the clients got, once warm.

    Attributes:
        rate: 200s a second.
        p50: median latency of the 200s, in seconds.
        p99: 99th percentile, in seconds.
        others: answers that were no 200, and requests without an answer.
    """

    rate: float
    p50: float
    p99: float
    others: int


async def closed_loop(
    target: Target,
    *,
    connections: int = 8,
    seconds: float = 5.0,
    warm_up: float = 1.0,
    reuse: bool = True,
) -> Capacity:
    """Keep `connections` requests in flight for `warm_up + seconds`, and count those of `seconds`.

    Without `reuse` each request opens a connection.

    Raises:
        ValueError: a count or time is out of range.
    """
    if not 0 < connections <= 10_000:
        raise ValueError(f"connections must be in 1..10000, got {connections}")
    if not 0 < seconds + warm_up <= 600 or warm_up < 0:
        raise ValueError(f"seconds and warm_up must fit in 600 s, got {seconds} and {warm_up}")
    latencies: list[float] = []
    others = 0
    begin = monotonic() + warm_up
    end = begin + seconds

    def done(record: Record) -> None:
        nonlocal others
        now = monotonic()
        if begin <= now < end:
            if record.outcome == 200:
                latencies.append(now - record.intended)
            else:
                others += 1
        if now < end:
            # Later, not now: a server that refuses at once would otherwise recurse for ever.
            loop.call_soon(submit)

    def submit() -> None:
        pool.submit(Record(monotonic()))

    loop = asyncio.get_running_loop()
    pool = Pool(target, done, reuse=reuse)
    try:
        for _ in range(connections):
            submit()
        await asyncio.sleep(end - monotonic())
    finally:
        pool.close()
    latencies.sort()
    return Capacity(
        len(latencies) / seconds, percentile(latencies, 50), percentile(latencies, 99), others
    )
