"""Several workers that are replaced, or become more or fewer, while they are asked."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from websockets.sync.client import connect

from benchmarks.process import Server

from .client import Client, get, launch, times
from .loading import Asking
from .test_start import wait_for
from .test_workers import WORKERS, wait_for_workers, workers


def wait_for_count(server: Server, count: int) -> set[int]:
    """Wait until there are so many workers, and all serve."""
    until = time.monotonic() + 20.0
    while True:
        assert time.monotonic() < until, server.output()
        found = workers(server)
        if len(found) == count and all(f"worker {w}: serving" in server.output() for w in found):
            return found
        time.sleep(0.05)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_reload_fails_no_request(serve, loop):
    """Each worker is replaced, readiness never turns, and what is in flight is finished."""
    server = serve(launch(*times(keep_alive=10, shutdown=10), WORKERS, loop=loop))
    before = wait_for_workers(server, other_than=set())
    with Client(server) as running, Asking(server) as work, Asking(server, "/readyz") as ready:
        running.ask("/slow/4")
        time.sleep(0.3)
        server.signal(signal.SIGHUP)
        after = wait_for_workers(server, other_than=before)
        time.sleep(0.3)
        server.signal(signal.SIGHUP)
        wait_for_workers(server, other_than=before | after)
        assert running.read().body == b"done"
    assert (work.failed, ready.failed) == ([], [])
    assert work.answered > 20
    output = server.output()
    assert output.count("replaced, accepting no longer") == 4
    assert "not ready" not in output
    server.signal(signal.SIGTERM)
    assert server.wait(10) == 0
    assert server.output().count("app: shut down") == 6


def test_a_new_one_serves_before_an_old_one_goes(serve):
    """There are never fewer than before."""
    server = serve(launch(*times(), WORKERS, env={"APP_STARTUP": "1"}))
    wait_for_workers(server, other_than=set())
    server.signal(signal.SIGHUP)
    wait_for(server, "replaced, accepting no longer")
    said = server.output().partition("replaced, accepting no longer")[0]
    assert said.count(": serving on") == 3


def test_one_more_and_one_less(serve):
    """SIGTTIN and SIGTTOU, as with Gunicorn; the last worker stays."""
    server = serve(launch(*times(), WORKERS))
    wait_for_workers(server, other_than=set())
    with Asking(server) as work:
        server.signal(signal.SIGTTIN)
        three = wait_for_count(server, 3)
        for count in (2, 1):
            server.signal(signal.SIGTTOU)
            wait_for_count(server, count)
        server.signal(signal.SIGTTOU)
        time.sleep(0.5)
        (last,) = wait_for_count(server, 1)
        server.signal(signal.SIGHUP)
        wait_for(server, f"worker {last}: stopped")
    assert work.failed == []
    assert last == max(three), "the oldest go first"
    assert len(wait_for_count(server, 1)) == 1
    server.signal(signal.SIGTERM)
    assert server.wait(10) == 0


def test_a_release_that_does_not_start_changes_nothing(serve, tmp_path: Path):
    """The old workers serve on, and the next reload may be better."""
    broken = tmp_path / "broken"
    server = serve(launch(*times(), WORKERS, env={"APP_BREAKS": str(broken)}))
    before = wait_for_workers(server, other_than=set())
    broken.touch()
    with Asking(server) as work:
        server.signal(signal.SIGHUP)
        wait_for(server, "which was to replace another, ended with exit code 3: the others serve")
        time.sleep(0.5)
        assert workers(server) == before
        broken.unlink()
        server.signal(signal.SIGHUP)
        wait_for_workers(server, other_than=before)
    assert work.failed == []


def test_workers_ignore_what_their_parent_listens_to(serve):
    """A signal to the whole group, as a terminal sends it, replaces them once and kills none."""
    server = serve(launch(*times(), WORKERS))
    before = wait_for_workers(server, other_than=set())
    with Asking(server) as work:
        os.killpg(server.pid, signal.SIGHUP)
        wait_for_workers(server, other_than=before)
    assert work.failed == []
    assert "was ended by" not in server.output()


def test_a_websocket_and_what_is_too_long_end_a_replaced_worker_in_time(serve):
    """With 1012, and with a name in the log; the exit code of the whole is not theirs."""
    server = serve(launch(*times(shutdown=2), WORKERS))
    before = wait_for_workers(server, other_than=set())
    with (
        connect(f"ws://{server.host}:{server.port}/", open_timeout=10) as websocket,
        Client(server) as running,
    ):
        running.ask("/slow/30")
        time.sleep(0.3)
        server.signal(signal.SIGHUP)
        with pytest.raises(Exception, match="1012"):
            websocket.recv(15)
        assert running.read().status == 500
        wait_for_workers(server, other_than=before)
    assert "GET '/slow/30' for" in server.output()
    assert get(server).status == 200
    server.signal(signal.SIGTERM)
    assert server.wait(10) == 0


def test_a_stop_at_the_very_start_of_a_worker(serve):
    """Wherever the signal finds it, the stop is orderly."""
    server = serve(launch(*times(), WORKERS))
    wait_for_workers(server, other_than=set())
    for _ in range(3):
        server.signal(signal.SIGTTIN)
    time.sleep(0.01)
    server.signal(signal.SIGTERM)
    assert server.wait(10) == 0, server.output()


def test_a_stop_in_the_middle_of_a_reload(serve):
    """All of them drain: the old, the new, and the one that is only starting."""
    server = serve(launch(*times(delay=0.5), WORKERS, env={"APP_STARTUP": "2"}))
    wait_for_workers(server, other_than=set())
    server.signal(signal.SIGHUP)
    time.sleep(0.7)
    assert len(workers(server)) == 3
    assert get(server).status == 200
    server.signal(signal.SIGTERM)
    assert server.wait(10) == 0
