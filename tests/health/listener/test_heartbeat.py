"""A loop that has ended is not one that is stuck."""

from __future__ import annotations

import asyncio

from resilience_mw.health.listener.heartbeat import Heartbeat

from .probing import until


def test_a_loop_that_runs_no_more():
    """As when each test, or each request of a test client, has a loop of its own."""
    heart = Heartbeat(1.0)

    async def begin() -> float:
        heart.start(asyncio.get_running_loop())
        return heart.last

    assert asyncio.run(begin()) > 0.0
    assert heart.last == 0.0
    assert asyncio.run(begin()) > 0.0


def test_liveness_without_the_loop_that_was(opened):
    """The process still answers, and is alive."""
    port, apart = opened(stuck_after=0.2)

    async def begin() -> None:
        apart.open(asyncio.get_running_loop())
        await asyncio.sleep(0.05)

    asyncio.run(begin())
    apart.heartbeat.at -= 10.0
    assert port.status("/livez") == 200
    apart.heartbeat._loop = None
    until(lambda: port.status("/livez") == 503)
