"""Several workers: replaced when they die, waited for when they stop."""

from __future__ import annotations

import os
import signal
import time

import pytest

from benchmarks.process import Server
from resilience_mw.runner.crashes import CRASHES, EXIT_CODE, MESSAGE

from .client import Client, begin, get, launch, refused, times, wait_refused
from .loading import Asking
from .test_drain import in_background
from .test_start import wait_for

WORKERS = "--workers=2"


def workers(server: Server) -> set[int]:
    """Return the processes of the workers."""
    return {process.pid for process in server.workers()}


def wait_for_workers(server: Server, *, other_than: set[int]) -> set[int]:
    """Wait for two workers that serve, none of them among these."""
    until = time.monotonic() + 20.0
    while True:
        assert time.monotonic() < until, server.output()
        found = workers(server)
        serving = all(f"worker {pid}: serving" in server.output() for pid in found)
        if len(found) == 2 and serving and not found & other_than:
            return found
        time.sleep(0.05)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_stop(serve, opened, loop):
    """Both drain; once they have stopped accepting, nobody is let into a queue by the parent."""
    server = serve(launch(*times(delay=0.8), WORKERS, loop=loop))
    wait_for_workers(server, other_than=set())
    running, got = in_background(opened.enter_context(Client(server)), "/slow/2.5")
    time.sleep(0.2)
    server.signal(signal.SIGTERM)
    time.sleep(0.3)
    for _ in range(10):
        answer = get(server, "/readyz")
        assert (answer.status, answer.closes) == (503, True)
        assert get(server).status == 200
    wait_refused(server, within=5.0)
    assert running.is_alive()
    time.sleep(0.3)
    assert refused(server)
    running.join(10)
    assert got[0].status == 200
    assert server.wait(10) == 0
    assert server.output().count("app: shut down") == 2


def test_a_worker_that_is_killed(serve):
    """Another one takes its place, and there is service in between."""
    server = serve(launch(*times(), WORKERS))
    before = wait_for_workers(server, other_than=set())
    victim = min(before)
    with Asking(server) as work:
        time.sleep(0.5)
        os.kill(victim, signal.SIGKILL)
        so_far = work.answered
        after = wait_for_workers(server, other_than={victim})
        time.sleep(0.5)
    assert work.answered > so_far
    assert len(work.failed) <= 2, "no more than was in the hands of the one that was killed"
    assert before - {victim} <= after
    assert f"worker {victim} was ended by SIGKILL, starting another" in server.output()
    server.signal(signal.SIGTERM)
    assert server.wait(10) == 0


def test_a_worker_that_dies_of_a_request(serve):
    """The others go on, and the exit code does not remember it."""
    server = serve(launch(*times(), WORKERS))
    wait_for_workers(server, other_than=set())
    with Client(server) as client:
        client.ask("/die")
        assert client.ended(10)
    wait_for(server, "ended with exit code 9, starting another")
    assert get(server).status == 200
    server.signal(signal.SIGTERM)
    assert server.wait(10) == 0


def test_workers_that_die_again_and_again(serve):
    """There is an end to it, with a reason and an exit code."""
    server = serve(begin(*times(), WORKERS, app="app", env={"APP_DIES": "1"}))
    assert server.wait(30) == EXIT_CODE
    output = server.output()
    assert MESSAGE in output
    assert output.count("ended with exit code 7, starting another") == CRASHES - 1
    assert "ended with exit code 7" in output


def test_an_app_that_does_not_start(serve):
    """The first worker that cannot start the app is enough."""
    server = serve(begin(*times(), WORKERS, env={"APP_FAILS": "1"}))
    assert server.wait(20) == 3
    assert "could not start the app" in server.output()


def test_a_request_that_takes_too_long(serve):
    """The code of the worker is that of the whole."""
    server = serve(launch(*times(shutdown=0.5), WORKERS))
    with Client(server) as client:
        client.ask("/slow/30")
        time.sleep(0.3)
        server.signal(signal.SIGTERM)
        assert server.wait(10) == 1
    assert "GET '/slow/30' for" in server.output()


def test_a_worker_that_blocks_its_loop(serve):
    """It ends in time, and so does the parent."""
    server = serve(launch(*times(shutdown=0.2), WORKERS))
    with Client(server) as client:
        client.ask("/block/60")
        time.sleep(0.3)
        server.signal(signal.SIGTERM)
        assert server.wait(15) == 1


def test_a_worker_that_hears_nothing(serve):
    """The parent kills it when its time is over."""
    server = serve(launch(*times(shutdown=0.2), WORKERS))
    stopped = min(wait_for_workers(server, other_than=set()))
    os.kill(stopped, signal.SIGSTOP)
    server.signal(signal.SIGTERM)
    assert server.wait(15) == 1
    assert "killing 1 workers" in server.output()


def test_a_second_signal(serve):
    """The workers go at once."""
    server = serve(launch(*times(delay=20.0, shutdown=20.0), WORKERS))
    with Client(server) as client:
        client.ask("/slow/30")
        time.sleep(0.3)
        server.signal(signal.SIGTERM)
        time.sleep(0.3)
        server.signal(signal.SIGTERM)
        assert server.wait(10) == 1
    assert server.output().count("app: shut down") == 2


def test_ctrl_c_in_a_terminal(serve):
    """All processes hear it; the workers listen to the parent, and skip the delay."""
    server = serve(launch(*times(delay=30.0), WORKERS))
    wait_for_workers(server, other_than=set())
    with Client(server) as client:
        client.ask("/slow/1")
        time.sleep(0.3)
        os.killpg(server.pid, signal.SIGINT)
        assert client.read().status == 200
    assert server.wait(10) == 0
    assert server.output().count("app: shut down") == 2


def test_a_signal_to_all_processes(serve):
    """As an init system sends it: that the workers hear SIGTERM twice changes nothing."""
    server = serve(launch(*times(delay=0.5), WORKERS))
    wait_for_workers(server, other_than=set())
    with Client(server) as client:
        client.ask("/slow/1")
        time.sleep(0.3)
        os.killpg(server.pid, signal.SIGTERM)
        assert client.read().status == 200
    assert server.wait(10) == 0


def test_a_parent_that_is_killed(serve):
    """Its workers do not stay behind with the port."""
    server = serve(launch(*times(delay=0.1), WORKERS))
    left = wait_for_workers(server, other_than=set())
    os.kill(server.pid, signal.SIGKILL)
    wait_refused(server, within=10.0)
    assert len(left) == 2
