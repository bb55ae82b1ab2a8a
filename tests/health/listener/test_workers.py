"""Several processes that speak through one port, and others that must not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from benchmarks.process import HOST, ROOT, free_port
from resilience_mw.health.listener.board import SIZE
from resilience_mw.health.listener.file import open_file

from .probing import Port, until

WORKER = """
import sys, threading, time
import resilience_mw.family as families
from resilience_mw.config import Health
from resilience_mw.core.health import HealthPolicy
from resilience_mw.core.lifecycle import State
from resilience_mw.exceptions import ConfigError
from resilience_mw.health.listener import OutOfBand

port, family = int(sys.argv[1]), int(sys.argv[2])
families._origin = family
policy = HealthPolicy()
apart = OutOfBand(policy, Health(port=port, host="127.0.0.1", stuck_after=1))
try:
    apart.open()
except ConfigError as error:
    sys.exit(str(error))
print("open", flush=True)
for line in sys.stdin:
    match line.strip():
        case "ready":
            policy.lifecycle.advance(State.READY)
        case "drain":
            policy.drain()
        case "beat":
            apart.heartbeat.at = time.monotonic()
        case "close":
            apart.close()
        case "fork":
            import os
            if os.fork() == 0:
                time.sleep(20)
                os._exit(0)
    print("done", flush=True)
"""
"""Takes orders on its standard input."""


class Worker:
    """One process."""

    def __init__(self, port: int, family: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(port), str(family)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def opened(self) -> bool:
        """Wait until it has begun or failed; returns which."""
        assert self.process.stdout is not None
        return self.process.stdout.readline() == "open\n"

    def tell(self, order: str) -> None:
        """Have it do something, and wait until it has."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{order}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def kill(self) -> None:
        """End it and its children without a word."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


Start = Callable[..., Worker]


@pytest.fixture
def port() -> Port:
    return Port(free_port())


@pytest.fixture
def start(port: Port) -> Iterator[Start]:
    """Start a worker of the server with this family."""
    workers: list[Worker] = []

    def begin(family: int = 1) -> Worker:
        worker = Worker(port.port, family)
        workers.append(worker)
        return worker

    yield begin
    for worker in workers:
        if worker.process.returncode is None:
            worker.kill()


@pytest.fixture
def pair(start: Start) -> tuple[Worker, Worker]:
    """Two workers, the first of which listens."""
    first = start()
    assert first.opened()
    second = start()
    assert second.opened()
    return first, second


def test_one_that_is_ready_is_enough(port, pair):
    """And one that has started; the last to drain turns the server."""
    first, second = pair
    assert (port.status("/readyz"), port.status("/startupz")) == (503, 503)
    second.tell("ready")
    until(lambda: port.status("/readyz") == 200)
    assert port.status("/startupz") == 200
    first.tell("ready")
    second.tell("drain")
    assert port.status("/readyz") == 200
    first.tell("drain")
    until(lambda: port.status("/readyz") == 503)
    assert port.status("/livez") == 200


def test_the_next_takes_over_when_the_listener_dies(port, pair):
    """Within milliseconds; here, with two busy cores, in far less than a second."""
    first, second = pair
    second.tell("ready")
    first.kill()
    assert until(lambda: port.status("/readyz") == 200) < 1.0


def test_the_next_takes_over_although_a_child_of_the_listener_lives(port, pair):
    """What a worker has forked keeps neither its port nor its locks."""
    first, second = pair
    second.tell("ready")
    first.tell("fork")
    os.kill(first.process.pid, signal.SIGKILL)
    first.process.wait()
    assert until(lambda: port.status("/readyz") == 200) < 1.0
    assert port.status() == 200
    first.kill()


def test_the_listener_hands_over_when_it_ends_in_order(port, pair):
    """The port is closed for a moment at most, and then not again."""
    first, second = pair
    second.tell("ready")
    first.tell("close")
    begun = last = time.monotonic()
    gap = 0.0
    while last - begun < 1.5:
        until(lambda: port.status("/livez") == 200)
        last, before = time.monotonic(), last
        gap = max(gap, last - before)
    assert gap < 0.5
    first.kill()
    assert port.status() == 200


def test_a_worker_that_is_gone_counts_no_more(port, pair):
    """Whatever it said last."""
    first, second = pair
    second.tell("ready")
    until(lambda: port.status() == 200)
    second.kill()
    until(lambda: port.status() == 503)
    first.tell("ready")
    assert port.status() == 200


def test_a_loop_that_is_stuck_anywhere_fails_liveness(port, pair):
    """Also in the worker that does not listen; a worker that has none, or has ended, is not."""
    first, second = pair
    for worker in pair:
        worker.tell("ready")
    assert port.status("/livez") == 200
    second.tell("beat")
    assert port.status("/livez") == 200
    until(lambda: port.status("/livez") == 503)
    assert port.ask("/livez").body == b"stuck"
    assert port.status("/readyz") == 200
    second.tell("beat")
    until(lambda: port.status("/livez") == 200)
    until(lambda: port.status("/livez") == 503)
    second.kill()
    until(lambda: port.status("/livez") == 200)
    first.tell("beat")
    until(lambda: port.status("/livez") == 503)


def test_another_server_is_turned_away(port, start):
    """With one line that names the option and the port, while the first goes on."""
    first = start()
    assert first.opened()
    first.tell("ready")
    other = start(family=2)
    assert not other.opened()
    _, err = other.process.communicate(timeout=20)
    assert other.process.returncode == 1
    assert err.count("\n") == 1
    assert err.startswith("health.port must be free, or 0 = off, got ")
    assert f"port {port.port}: another server with process {first.process.pid}" in err
    assert port.status() == 200


def test_a_file_that_is_removed_is_made_anew(port, pair, start):
    """As cleaners and logind do: workers that come later still find those that are there."""
    first, second = pair
    second.tell("ready")
    until(lambda: port.status() == 200)
    path, descriptor = open_file(port.port, SIZE)
    os.close(descriptor)
    path.unlink()
    third = start()
    assert third.opened()
    assert port.status() == 200
    first.kill()
    until(lambda: port.status() == 200)
    second.kill()
    until(lambda: port.status() == 503)
    third.tell("ready")
    until(lambda: port.status() == 200)


def test_a_file_that_is_removed_keeps_other_servers_away(port, pair, start):
    """Whether they come before or after there is a new one."""
    pair[0].tell("ready")
    path, descriptor = open_file(port.port, SIZE)
    os.close(descriptor)
    path.unlink()
    other = start(family=2)
    assert not other.opened()
    assert "health.port must be free" in other.process.communicate(timeout=20)[1]
    assert port.status() == 200


def test_a_port_that_is_taken_by_somebody_else(port, start):
    """Is an error at the start."""
    import socket

    with socket.create_server((HOST, port.port)):
        worker = start()
        assert not worker.opened()
        _, err = worker.process.communicate(timeout=20)
    assert "health.port must be free" in err
    assert "ddress already in use" in err
