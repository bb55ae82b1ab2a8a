"""The rule by which both servers tell a crash loop, and what a worker's own end counts as."""

from __future__ import annotations

import contextlib
import sys
import time

from benchmarks.servers import start
from benchmarks.talk import get
from resilience_mw.runner.crashes import CRASHES, SOON, CrashLoop

from .client import APPS, begin, times
from .test_workers import wait_for_workers

LIMITED = f"""
from resilience_mw import Config, Runner
from resilience_mw.runner.uvicorn import run
given = Config(runner=Runner(drain_delay=0))
run("{APPS}:app", given, port={{port}}, workers=2, limit_max_requests=8)
"""


def test_so_many_that_die_soon_in_a_row():
    """The last of them is the end."""
    loop = CrashLoop()
    assert [loop.died(SOON) for _ in range(CRASHES)] == [False] * (CRASHES - 1) + [True]


def test_one_that_lived_for_longer_begins_the_count_anew():
    """It has worked, and so may the next."""
    loop = CrashLoop()
    for lived in (0.0,) * (CRASHES - 1) + (SOON + 0.1,):
        assert not loop.died(lived)
    assert loop.strikes == 0
    assert [loop.died(1.0) for _ in range(CRASHES)][-1]


def test_workers_that_have_served_enough_are_no_crash(serve):
    """Uvicorn's own limit of requests ends more of them than a crash loop has, soon."""
    server = serve(start(lambda port: [sys.executable, "-c", LIMITED.format(port=port)]))
    wait_for_workers(server, other_than=set())
    until = time.monotonic() + 3 * SOON
    while server.output().count("ended with exit code 0, starting another") <= CRASHES:
        assert time.monotonic() < until
        with contextlib.suppress(OSError):  # none of two may be there for a moment
            get(server)
    wait_for_workers(server, other_than=set())
    assert server.running


def test_an_app_that_exits_when_it_is_imported_has_not_started(serve):
    """Whatever its code says."""
    server = serve(begin(*times(), "--workers=2", env={"APP_EXITS": "1"}))
    assert server.wait(20) == 3
