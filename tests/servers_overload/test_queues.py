"""Requests that queue behind the middleware, where the event loop idles."""

from __future__ import annotations

import asyncio
import time
from statistics import median

import httpx2
import pytest

from benchmarks.load import Load, Phase, Target, open_loop, run
from tests.servers import uvicorn
from tests.servers_overload.queues import CONNECTIONS, SECONDS, TOKENS

WARM_UP, OVERLOAD, SETTLED = 1.5, 4.0, 1.0


def overload(server, path, capacity, factor):
    """Ask for `factor` times the capacity; return what came after it had settled, and probes."""
    load = Load(phases=(Phase(capacity / 2, WARM_UP), Phase(factor * capacity, OVERLOAD)))

    async def watched():
        probe = Load.steady(20, WARM_UP + OVERLOAD, reuse=False)
        states = asyncio.ensure_future(watch(server.url))
        pages, probes = await asyncio.gather(
            open_loop(Target.parse(f"{server.url}{path}"), load),
            open_loop(Target.parse(f"{server.url}/livez"), probe),
        )
        return pages, probes, await states

    pages, probes, states = run(watched())
    settled = [page for page in pages if page.intended >= WARM_UP + SETTLED]
    return settled, probes, states


async def watch(url):
    """Return (slots, tokens, threads, utilization) as they were, many times, while settled."""
    states = []
    async with httpx2.AsyncClient() as client:
        await asyncio.sleep(WARM_UP + SETTLED)
        until = time.monotonic() + OVERLOAD - SETTLED - 0.5
        while time.monotonic() < until:
            states.append([float(word) for word in (await client.get(f"{url}/state")).text.split()])
            await asyncio.sleep(0.02)
    return states


def late(records):
    """Return the 99th percentile of the latencies of those that were served, in seconds."""
    latencies = sorted(record.latency for record in records if record.outcome == 200)
    return latencies[int(0.99 * len(latencies))]


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_full_thread_pool(loop, serve):
    """Slots, tokens and threads agree; probes do not wait for a thread; nobody else waits long."""
    server = serve(uvicorn("tests.servers_overload.queues:app", loop=loop))
    capacity = TOKENS / SECONDS
    pages, probes, states = overload(server, "/thread", capacity, 3)
    served = [page for page in pages if page.outcome == 200 and page.latency <= 0.5]
    assert len(served) >= 0.5 * capacity * (OVERLOAD - SETTLED)
    assert {page.outcome for page in pages} == {200, 503}
    assert {probe.outcome for probe in probes} == {200}
    assert median(probe.latency for probe in probes) < 0.05
    slots, tokens, threads, _ = zip(*states, strict=True)
    assert median(tokens) == TOKENS
    # A thread that has its token may still wait for the interpreter, the more so on a busy machine.
    assert 0 <= median(tokens) - median(threads) <= TOKENS / 4
    assert min(token - thread for token, thread in zip(tokens, threads, strict=True)) >= 0
    assert median(slots) - median(threads) <= TOKENS / 2  # the next few stand ready
    assert min(slot - thread for slot, thread in zip(slots, threads, strict=True)) >= 0


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_full_pool_of_connections(loop, serve):
    """It is used to the full though the loop idles, and who is let in does not wait long."""
    server = serve(uvicorn("tests.servers_overload.queues:app", loop=loop))
    capacity = CONNECTIONS / SECONDS
    pages, probes, states = overload(server, "/pool", capacity, 2)
    served = [page for page in pages if page.outcome == 200]
    assert len(served) >= 0.8 * capacity * (OVERLOAD - SETTLED)
    assert late(pages) <= 10 * SECONDS
    assert {page.outcome for page in pages} == {200, 503}
    assert {probe.outcome for probe in probes} == {200}
    assert median(state[3] for state in states) < 0.7
