from __future__ import annotations

import asyncio
import signal

import pytest

from benchmarks.load import Load, Target, closed_loop, open_loop, run, summarize
from benchmarks.servers import uvicorn

HELLO = "tests.load.hello:app"


@pytest.fixture(scope="module")
def server():
    with uvicorn(HELLO) as running:
        yield running


async def stall(server, after, seconds):
    await asyncio.sleep(after)
    server.signal(signal.SIGSTOP)
    await asyncio.sleep(seconds)
    server.signal(signal.SIGCONT)


def test_a_stall_is_not_hidden(server):
    """A server that stands still for 0.6 s shows it to everybody who came meanwhile.

    A generator that waits for answers would record the stall once; this one must show it in
    about as many latencies as requests were due, the worst of them nearly the whole of it.
    """

    async def main():
        load = Load.steady(300, 2.0)
        records, _ = await asyncio.gather(
            open_loop(Target.parse(server.url), load), stall(server, 0.6, 0.6)
        )
        return records

    records = run(main())
    summary = summarize(records, bound=0.1)
    assert summary.outcomes == {"200": 600}
    assert summary.p99 > 0.5
    due_in_the_stall = 0.6 * 300
    assert summary.answered - summary.in_time > 0.6 * due_in_the_stall


def test_capacity_counts_what_waiting_clients_get(server):
    """The closed loop keeps its clients busy, and its latencies fit its rate (Little's law)."""
    capacity = run(closed_loop(Target.parse(server.url), connections=4, seconds=0.5, warm_up=0.1))
    assert capacity.others == 0
    assert capacity.rate > 100
    assert capacity.p50 <= capacity.p99
    assert capacity.rate * capacity.p50 < 4 * 2


@pytest.mark.parametrize(
    "options", [{"connections": 0}, {"seconds": -1.0}, {"seconds": 900.0}, {"warm_up": -1.0}]
)
def test_capacity_is_bounded(options):
    """A count or time out of range is an error before anything is sent."""
    with pytest.raises(ValueError, match="must"):
        run(closed_loop(Target("127.0.0.1", 9), **options))
