"""The trap of the shop: a check that goes through the pool it should not depend on."""

from __future__ import annotations

import http.client
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.process import HOST, Server, free_port
from resilience_mw.health import UpstreamCheck
from tests.health.checks.asking import PASSED, ask
from tests.servers import uvicorn

BUSY = 10.0 if os.environ.get("SLOW") else 3.0
"""Seconds for which all connections of the pool are taken."""


def _get(port: int, path: str) -> tuple[int, float]:
    """Return status and seconds."""
    client = http.client.HTTPConnection(HOST, port, timeout=60)
    started = time.monotonic()
    try:
        client.request("GET", path)
        return client.getresponse().status, time.monotonic() - started
    finally:
        client.close()


@pytest.fixture
def back_end(tmp_path: Path, serve: Callable[[Server], Server]) -> Server:
    (tmp_path / "mode").write_text("ok")
    port = free_port()
    command = [sys.executable, "-m", "tests.health.chain.backend", str(port), str(tmp_path)]
    started = serve(Server(command, port))
    started.wait_until_serving()
    return started


def test_a_busy_pool_delays_the_naive_check_and_not_ours(back_end, serve):
    """Five pages hold the five connections; the balancer asks meanwhile, and allows one second."""
    app = serve(uvicorn("tests.health.chain.shop:app", env={"BACKEND": back_end.url}))
    until = time.monotonic() + 15
    while _get(app.port, "/status")[0] != 200 and time.monotonic() < until:
        time.sleep(0.05)

    results: list[tuple[int, float]] = []
    pages = [
        threading.Thread(target=lambda: results.append(_get(app.port, f"/page/{BUSY}")))
        for _ in range(5)
    ]
    for thread in pages:
        thread.start()
    time.sleep(0.3)

    naive: list[tuple[int, float]] = []
    balancer = threading.Thread(target=lambda: naive.append(_get(app.port, "/naive")))
    balancer.start()
    ours, fresh = [], []
    check = UpstreamCheck(f"{back_end.url}/status", timeout=0.8)
    while balancer.is_alive():
        ours.append(_get(app.port, "/status"))
        started = time.monotonic()
        assert ask(check) == PASSED
        fresh.append(time.monotonic() - started)
        time.sleep(0.1)
    for thread in (*pages, balancer):
        thread.join(60)

    assert [status for status, _ in results] == [200] * 5
    (status, waited), *_ = naive
    assert status == 200
    assert waited > BUSY / 2
    # Each of them was asked all through that time, and the upstream was well all the time.
    assert len(ours) >= BUSY
    assert {status for status, _ in ours} == {200}
    seconds = [seconds for _, seconds in ours]
    assert statistics.median(seconds) < 0.1
    assert statistics.median(fresh) < 0.1
    assert max(seconds) < 1.0, "the balancer would have taken the server out"
