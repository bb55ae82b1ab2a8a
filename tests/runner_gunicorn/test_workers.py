"""What happens when workers end by themselves, are replaced, or die."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable

import pytest

from benchmarks.process import Server, free_port
from benchmarks.talk import Answer, Client, get
from resilience_mw.runner.crashes import EXIT_CODE, MESSAGE

from .launch import CLASSES, TIMES, app_for, launch, until


class Prober:
    """Asks for readiness all the time, each time on a new connection."""

    def __init__(self, server: Server, path: str = "/readyz") -> None:
        self.answers: list[Answer] = []
        self._server = server
        self._path = path
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._end.wait(0.02):
            try:
                self.answers.append(get(self._server, self._path))
            except OSError:
                self.answers.append(Answer(0, "reset", False, b"", 0.0))

    def __enter__(self) -> Prober:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._end.set()
        self._thread.join()


@pytest.mark.parametrize("worker", CLASSES)
def test_a_reload_turns_nobody_unready(worker, serve: Callable[[Server], Server]):
    """HUP replaces every worker; whoever asks meanwhile is told that all is well."""
    server = serve(launch(worker, workers=2))
    before = {process.pid for process in server.workers()}
    with Prober(server) as prober:
        time.sleep(0.2)
        server.signal(signal.SIGHUP)
        assert until(lambda: not before & {process.pid for process in server.workers()})
        time.sleep(0.2)
    assert len(prober.answers) > 10
    assert {(answer.status, answer.ended) for answer in prober.answers} == {(200, "complete")}
    assert len(server.workers()) == 2
    assert "Error" not in server.output()
    assert "not ready" not in server.output()


def test_a_reload_says_what_it_is(serve: Callable[[Server], Server]):
    """The uvicorn worker's log speaks of a replacement, and not of a stop; one stop says so."""
    server = serve(launch("uvicorn-worker"))
    (before,) = (process.pid for process in server.workers())
    server.signal(signal.SIGHUP)
    assert until(lambda: f"worker {before}: replaced, accepting no longer" in server.output())
    assert until(lambda: before not in {process.pid for process in server.workers()})
    assert "not ready" not in server.output()
    assert server.stop() == 0
    assert server.output().count("replaced, accepting no longer") == 1
    assert "not ready, still accepting for 1 s" in server.output()


@pytest.mark.parametrize("worker", CLASSES)
def test_enough_requests_turn_nobody_unready(worker, serve: Callable[[Server], Server]):
    """A worker that has had its `max_requests` is replaced without a failed request."""
    server = serve(launch(worker, "--max-requests", "30", workers=2))
    before = {process.pid for process in server.workers()}
    with Prober(server, "/") as requests:
        assert until(lambda: not before & {process.pid for process in server.workers()}, 20.0)
    assert [answer for answer in requests.answers if not answer.ok] == []
    assert get(server, "/readyz").status == 200


@pytest.mark.parametrize("worker", CLASSES)
def test_a_killed_worker_is_replaced(worker, serve: Callable[[Server], Server]):
    """What it was doing is lost, the other serves on, and soon there are two again."""
    server = serve(launch(worker, workers=2))
    victim = int(get(server, "/pid").body)
    with Prober(server, "/") as requests:
        time.sleep(0.2)
        os.kill(victim, signal.SIGKILL)
        assert until(lambda: victim not in [process.pid for process in server.workers()])
        assert until(lambda: len(server.workers()) == 2)
        time.sleep(0.5)
    failed = [answer for answer in requests.answers if not answer.ok]
    assert len(failed) <= 3
    assert server.running
    assert server.stop() == 0


@pytest.mark.parametrize("worker", CLASSES)
def test_a_crash_loop_ends_the_server(worker):
    """Workers that do nothing but die are not replaced for ever; the message says so."""
    import sys

    from benchmarks.servers import WORKER_CLASSES

    command = [
        *[sys.executable, "-m", "gunicorn", "--bind", f"127.0.0.1:{free_port()}"],
        *["--worker-class", WORKER_CLASSES.get(worker, worker), "--no-control-socket"],
        *["-c", "python:resilience_mw.runner.gunicorn", app_for(worker)],
    ]
    env = {**os.environ, **TIMES, "CRASH_AFTER": "0.1"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=40, check=False)
    assert done.returncode == EXIT_CODE
    assert MESSAGE in done.stderr


def test_a_worker_that_cannot_start_ends_the_server():
    """As with Gunicorn alone."""
    import sys

    command = [sys.executable, "-m", "gunicorn", "--bind", f"127.0.0.1:{free_port()}"]
    command += ["--no-control-socket", "-c", "python:resilience_mw.runner.gunicorn", "nowhere:app"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode in (3, 4)


def test_the_asgi_worker_has_the_backlog_that_was_set(serve: Callable[[Server], Server]):
    """Not asyncio's own of 100."""
    server = serve(launch("asgi", "--backlog", "777"))
    with open("/proc/net/tcp") as table:
        listed = [line.split() for line in table if f":{server.port:04X} 00000000" in line]
    assert listed
    clients = [Client(server) for _ in range(3)]  # it listens
    for client in clients:
        client.close()
    assert _backlog(server.port) == 777


def _backlog(port: int) -> int:
    done = subprocess.run(
        ["ss", "-ltnH", f"sport = :{port}"], capture_output=True, text=True, check=True
    )
    return int(done.stdout.split()[2])


def test_workers_end_with_their_master(serve: Callable[[Server], Server]):
    """A master that is killed leaves none behind, and what still answers is not ready."""
    server = serve(launch("gthread", workers=2))
    left = server.workers()
    os.kill(server.pid, signal.SIGKILL)
    assert until(lambda: not any(process.is_running() for process in left))
