"""What SIGTERM does on each worker class, from the first moment to the exit code."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable

import pytest

from benchmarks.process import Server
from benchmarks.talk import Answer, Client, get

from .launch import CLASSES, LOOPS, launch, together, until

SIDE_BY_SIDE = [worker for worker in CLASSES if worker != "sync"]

DELAY = 2.0


class Stop:
    """A server that has just been told to stop; times count from there."""

    def __init__(self, server: Server) -> None:
        self.server = server
        server.signal(signal.SIGTERM)
        self.at = time.monotonic()

    @property
    def now(self) -> float:
        return time.monotonic() - self.at

    def wait(self, until: float) -> None:
        time.sleep(max(0.0, until - self.now))

    def exit_code(self, timeout: float = 15.0) -> int:
        return self.server.wait(timeout)


def kept(server: Server) -> Client:
    """An idle connection that has been used once."""
    client = Client(server)
    assert client.get("/").ok
    return client


def ask_at(stop: Stop, client: Client, moment: float) -> Answer:
    stop.wait(moment)
    client.ask("/")
    return client.read()


def reuse(stop: Stop, seconds: float) -> list[Answer]:
    """Ask twenty times a second, on one connection for as long as the server says it stays."""
    answers = []
    client = Client(stop.server)
    while stop.now < seconds:
        answers.append(client.get("/"))
        if answers[-1].says_close:
            client.close()
            client = Client(stop.server)
        time.sleep(0.05)
    client.close()
    return answers


@pytest.mark.parametrize("worker", SIDE_BY_SIDE)
def test_nothing_fails_while_the_server_stops(worker, serve: Callable[[Server], Server]):
    """Not ready at once, all are served with `Connection: close`, then refused; exit code 0."""
    server = serve(launch(worker, runner_drain_delay=f"{DELAY:g}", runner_keep_alive_timeout="10"))
    running, streaming, half, idle = Client(server), Client(server), Client(server), kept(server)
    others = [kept(server) for _ in range(3)]
    running.ask("/sleep/3")
    streaming.ask("/stream/30")
    half.send(b"GET / HTTP/1.1\r\nHo")
    time.sleep(0.3)
    assert get(server, "/readyz").status == 200
    stop = Stop(server)

    def ready() -> int:
        stop.wait(0.2)
        return get(server, "/readyz").status

    def half_head() -> Answer:
        stop.wait(0.4)  # its own deadline is a second
        half.send(b"st: test\r\n\r\n")
        return half.read()

    def refused() -> float:
        stop.wait(DELAY - 0.5)
        assert get(server).ok
        while stop.now < 10.0:
            try:
                Client(server).close()
            except ConnectionRefusedError:
                return stop.now
            time.sleep(0.02)
        return 0.0

    seen = together(
        ready=ready,
        live=lambda: get(server, "/livez").status,
        running=lambda: running.read(),
        streaming=lambda: streaming.read(),
        half=half_head,
        idle=lambda: (idle.wait_closed(), stop.now)[1],
        at_once=lambda: ask_at(stop, others[0], 0.02),
        soon=lambda: ask_at(stop, others[1], 0.5),
        later=lambda: ask_at(stop, others[2], 1.4),
        reused=lambda: reuse(stop, DELAY - 0.3),
        refused=refused,
        exit_code=stop.exit_code,
    )
    ended = stop.now
    for client in (running, streaming, half, idle, *others):
        client.close()
    assert (seen["ready"], seen["live"]) == (503, 200)
    for name in ("running", "half", "at_once", "soon", "later"):
        assert (name, seen[name].ok, seen[name].says_close) == (name, True, True)
    assert seen["streaming"].ok
    assert seen["streaming"].body.count(b"piece") == 30
    assert seen["reused"]
    assert all(answer.ok for answer in seen["reused"])
    assert DELAY - 0.2 < seen["idle"] < DELAY + 1.5
    assert DELAY - 0.2 < seen["refused"] < DELAY + 1.5
    assert seen["exit_code"] == 0
    assert ended < DELAY + 4.0
    if worker in LOOPS:
        assert "lifespan.shutdown" in server.output()


def test_a_sync_worker_stops_without_a_failure(serve: Callable[[Server], Server]):
    """One of two is busy: the other answers, then new clients are refused, not left hanging."""
    server = serve(launch("sync", workers=2))
    running = Client(server)
    running.ask("/sleep/2.5")
    time.sleep(0.2)
    stop = Stop(server)
    time.sleep(0.2)
    assert get(server, "/readyz").status == 503
    assert get(server).ok
    stop.wait(1.8)
    with pytest.raises(ConnectionRefusedError):
        Client(server)
    assert running.read().ok
    running.close()
    assert stop.exit_code() == 0


@pytest.mark.parametrize("worker", CLASSES)
def test_what_takes_too_long_is_answered_and_named(worker, serve: Callable[[Server], Server]):
    """At the limit clients get an answer; the log says what it was, and so does the exit code."""
    server = serve(launch(worker, runner_drain_delay="0", runner_shutdown_timeout="1"))
    with Client(server) as client:
        client.ask("/sleep/8")
        time.sleep(0.3)
        stop = Stop(server)
        answer = client.read()
        assert 0.8 < stop.now < 3.5
    assert answer.status in (500, 503)
    assert answer.ended == "complete"
    assert stop.exit_code() == 1
    assert stop.now < 6.0
    assert "GET '/sleep/8' for 1." in server.output()
    if worker in LOOPS:
        assert "lifespan.shutdown" in server.output()


@pytest.mark.parametrize("worker", LOOPS)
def test_websockets_are_closed_with_service_restart(worker, serve: Callable[[Server], Server]):
    """They live through the delay, and learn that they may come back."""
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    server = serve(launch(worker))
    with connect(f"ws://{server.host}:{server.port}/ws", open_timeout=5) as websocket:
        websocket.send("before")
        assert websocket.recv(5) == "before"
        stop = Stop(server)
        stop.wait(0.3)
        websocket.send("meanwhile")
        assert websocket.recv(5) == "meanwhile"
        with pytest.raises(ConnectionClosed) as closed:
            websocket.recv(8)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1012
        assert 0.8 < stop.now < 3.5
    assert stop.exit_code() == 0


@pytest.mark.parametrize("worker", CLASSES)
def test_a_second_signal_ends_at_once(worker, serve: Callable[[Server], Server]):
    """Whoever asks twice does not want to wait; what that cuts off counts as forced."""
    server = serve(launch(worker, runner_drain_delay="30", runner_shutdown_timeout="30"))
    with Client(server) as client:
        client.ask("/sleep/20")
        time.sleep(0.3)
        stop = Stop(server)
        stop.wait(0.5)
        server.signal(signal.SIGTERM)
        assert stop.exit_code() == 1
    assert stop.now < 6.0
    assert "second signal" in server.output()


@pytest.mark.parametrize("worker", ["gthread", "asgi"])
def test_a_second_signal_while_draining_ends_at_once(worker, serve: Callable[[Server], Server]):
    """The same once nothing is accepted any more."""
    server = serve(launch(worker, runner_drain_delay="0", runner_shutdown_timeout="30"))
    with Client(server) as client:
        client.ask("/sleep/20")
        time.sleep(0.3)
        stop = Stop(server)
        stop.wait(0.7)
        server.signal(signal.SIGTERM)
        assert stop.exit_code() == 1
    assert stop.now < 6.0


@pytest.mark.parametrize("worker", CLASSES)
def test_a_stop_while_starting_waits_for_nobody(worker, serve: Callable[[Server], Server]):
    """No delay, since nobody was ready, and the app need not be loaded to its end."""
    server = Server([*_command(worker, port := _port())], port, env={"LOADING": "20"})
    with server:
        assert until(lambda: "loading" in server.output())
        stop = Stop(server)
        assert stop.exit_code() == 0
        assert stop.now < 3.5
    assert "WORKER TIMEOUT" not in server.output()


def _command(worker: str, port: int) -> list[str]:
    import sys

    from benchmarks.servers import WORKER_CLASSES

    from .launch import app_for

    return [
        *[sys.executable, "-m", "gunicorn", "--bind", f"127.0.0.1:{port}"],
        *["--worker-class", WORKER_CLASSES.get(worker, worker), "--no-control-socket"],
        *["-c", "python:resilience_mw.runner.gunicorn", app_for(worker)],
    ]


def _port() -> int:
    from benchmarks.process import free_port

    return free_port()


def test_each_stage_is_logged_once(serve: Callable[[Server], Server]):
    """A person reads the times at the start, and each stage of the stop."""
    server = serve(launch("gthread"))
    stop = Stop(server)
    assert stop.exit_code() == 0
    output = server.output()
    for line in (
        r"master: keep-alive 1.5 s, headers 1 s, drain delay 1 s, shutdown 3 s",
        r"master: not ready, still accepting for 1 s",
        r"worker \d+: not ready",
        r"master: no longer accepting, requests in flight have 3 s",
    ):
        assert len(re.findall(line, output)) == 1
