"""A check that hangs for ever costs what it holds at the moment, and nothing more later."""

from __future__ import annotations

import asyncio
import gc
import threading

import psutil
import pytest

from resilience_mw.health import Check, Monitor, RedisCheck, TcpCheck, UpstreamCheck
from tests.health.checks.asking import PASSED, verdict


@pytest.mark.skipif(not hasattr(psutil.Process, "num_fds"), reason="cannot count descriptors")
def test_rounds_of_a_hanging_upstream_leak_nothing(peer):
    """A thousand: neither tasks, nor descriptors, nor threads of ours."""
    upstream = peer(lambda connection, _: connection.recv(1))
    process = psutil.Process()

    async def rounds() -> None:
        check = UpstreamCheck(upstream.url(), timeout=0.002)
        for _ in range(1000):
            assert await verdict(check) == "timeout"
        await asyncio.sleep(0.05)
        assert len(asyncio.all_tasks()) == 1

    before = process.num_fds()
    asyncio.run(rounds())
    upstream.close()
    gc.collect()
    assert process.num_fds() <= before
    assert upstream.accepted >= 1


def test_rounds_of_answers_leave_nothing_open(peer):
    """Whether they pass or fail."""
    upstream = peer()
    process = psutil.Process()

    async def rounds() -> None:
        check = UpstreamCheck(upstream.url(), timeout=10)
        for turn in range(200):
            upstream.behaviour = (
                b"HTTP/1.1 500 No\r\n\r\n" if turn % 2 else b"HTTP/1.1 200 OK\r\n\r\n"
            )
            assert await verdict(check) == ("status 500" if turn % 2 else PASSED)
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(rounds())
    upstream.close()
    gc.collect()
    peers = [getattr(each.raddr, "port", 0) for each in process.net_connections("inet")]
    assert upstream.port not in peers


def test_all_of_them_in_one_monitor(peer):
    """What hangs delays none of the others, and each has its own reason."""
    silent = peer(lambda connection, _: connection.recv(1))
    refused = peer()
    refused.close()
    release = threading.Event()
    fast = {"interval": 0.1, "timeout": 0.3}
    monitor = Monitor(
        {
            "well": UpstreamCheck(peer().url(), timeout=5, interval=0.1),
            "silent": UpstreamCheck(silent.url(), **fast),  # type: ignore[arg-type]
            "refused": TcpCheck("127.0.0.1", refused.port, interval=0.1),
            "redis": RedisCheck(f"redis://127.0.0.1:{refused.port}", interval=0.1),
            "stuck": Check(lambda: release.wait(60), **fast),  # type: ignore[arg-type]
        }
    )
    expected = {
        "well": "",
        "silent": "timeout",
        "refused": "refused",
        "redis": "refused",
        "stuck": "timeout",
    }
    monitor.start()
    try:
        seen: dict[str, str] = {}
        for _ in range(400):
            seen = {result.name: result.reason for result in monitor.results()}
            if seen == expected:
                break
            threading.Event().wait(0.05)
        assert seen == expected
        statuses = {result.name: result.status for result in monitor.results()}
        assert statuses["well"] == 200
        assert statuses["silent"] is None
    finally:
        release.set()
        monitor.close()
