"""SIGTERM in the middle of everything, on every server and worker class: one table of outcomes.

What else ends a server is tested where the server is: a request that is longer than there is time,
a second signal, a signal during the start, a killed worker and a crash loop in `test_drain`,
`test_start` and `test_workers` of `runner_uvicorn`, and `test_stop` and `test_workers` of
`runner_gunicorn`.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from benchmarks.kinds import ASGI, KINDS
from benchmarks.process import Server
from benchmarks.talk import Answer, Client, get
from tests.runner_gunicorn.launch import together

HEAD = b"GET / HTTP/1.1\r\nHost: te"
BODY = b"POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 12\r\n\r\nsome"

DELAY = 2.0
"""Seconds for which our servers in `benchmarks.kinds` are not ready, but still accept."""

LATE = 6.0
"""Seconds that a shared machine may add to any time."""

SERVED = "200, close"

SIDE_BY_SIDE = [
    name for name, kind in KINDS.items() if kind.runner == "ours" and name[-4:] != "sync"
]

MOMENTS = (0.02, 0.5, 1.5)


class Stop:
    """A server with clients of all kinds, then SIGTERM; times count from there."""

    def __init__(self, server: Server, opened: ExitStack) -> None:
        self.server = server
        self.opened = opened
        self.at = 0.0

    def client(self, start: bytes = b"") -> Client:
        """Open a connection, and send a beginning."""
        client = self.opened.enter_context(Client(self.server))
        client.send(start)
        return client

    def asking(self, path: str) -> Client:
        """Open a connection, and ask."""
        client = self.client()
        client.ask(path)
        return client

    def kept(self) -> Client:
        """Open a connection, use it once, and leave it."""
        client = self.client()
        assert client.get("/").ok
        return client

    def terminate(self) -> None:
        """Send SIGTERM."""
        time.sleep(0.3)
        self.server.signal(signal.SIGTERM)
        self.at = time.monotonic()

    @property
    def now(self) -> float:
        """Seconds since then."""
        return time.monotonic() - self.at

    def wait(self, moment: float) -> None:
        """Wait until so many seconds after it."""
        time.sleep(max(0.0, moment - self.now))


def said(answer: Answer) -> str:
    """Return an outcome in words."""
    if not answer.ok:
        return f"{answer.status}, {answer.ended}"
    return SERVED if answer.says_close else "200"


def asks_at(stop: Stop, client: Client, moment: float) -> str:
    """Use an idle connection at a moment."""
    stop.wait(moment)
    client.ask("/")
    return said(client.read())


def completes(stop: Stop, halves: list[Client]) -> set[str]:
    """Send the rest of heads, half of them once nothing is accepted any more."""
    outcomes = set()
    for moment, clients in ((1.0, halves[::2]), (DELAY + 0.5, halves[1::2])):
        stop.wait(moment)
        for client in clients:
            client.send(b"st\r\n\r\n")
        outcomes |= {said(client.read()) for client in clients}
    return outcomes


def drips(stop: Stop, client: Client) -> str:
    """Send the rest of a body, a byte at a time, beyond the moment of the last accept."""
    for _ in range(8):
        time.sleep((DELAY + 0.5) / 8)
        client.send(b"x")
    answer = client.read()
    return said(answer) if answer.body == b"somexxxxxxxx" else f"body {answer.body!r}"


def reuses(stop: Stop) -> set[str]:
    """Ask twenty times a second, on one connection for as long as the server lets it be."""
    outcomes = set()
    client = Client(stop.server)
    while stop.now < DELAY - 0.5:
        outcomes.add(said(client.get("/")))
        client.close()  # each says that the connection is at its end
        client = Client(stop.server)
        time.sleep(0.05)
    client.close()
    return outcomes


def streams(client: Client, pieces: int) -> str:
    """Read a stream to its end."""
    answer = client.read()
    return "whole" if answer.ok and answer.body.count(b"piece") == pieces else said(answer)


def readiness(stop: Stop) -> int:
    """Ask whether it is ready, soon after SIGTERM."""
    stop.wait(0.25)
    return get(stop.server, "/readyz").status


def refused_at(stop: Stop) -> float:
    """Tell when new connections are refused."""
    while stop.now < DELAY + LATE:
        try:
            Client(stop.server).close()
        except ConnectionRefusedError:
            return stop.now
        time.sleep(0.05)
    return -1.0


@pytest.fixture
def stopping():
    """Make a `Stop` of a server."""
    with ExitStack() as opened:

        def begin(server: Server) -> Stop:
            opened.callback(server.kill)
            return Stop(server, opened)

        yield begin


@pytest.mark.parametrize("name", SIDE_BY_SIDE)
def test_nobody_fails(name, stopping: Callable[[Server], Stop]):
    """Everybody who is there, or comes within the delay, is served to the end; exit code 0."""
    stop = stopping(KINDS[name].start(ours=True, keep_alive=30))
    running, stream = stop.asking("/sleep/4"), stop.asking("/stream/40")
    halves = [stop.client(HEAD) for _ in range(16)]
    body, idle, *asking = stop.client(BODY), stop.kept(), *(stop.kept() for _ in MOMENTS)
    stop.terminate()
    seen = together(
        running=lambda: (said(running.read()), stop.now),
        stream=lambda: (streams(stream, 40), stop.now),
        halves=lambda: completes(stop, halves),
        body=lambda: drips(stop, body),
        reused=lambda: reuses(stop),
        idle=lambda: (idle.wait_closed(DELAY + LATE), stop.now)[1],
        refused=lambda: refused_at(stop),
        ready=lambda: readiness(stop),
        **{
            f"idle {moment}": lambda client=client, moment=moment: asks_at(stop, client, moment)
            for client, moment in zip(asking, MOMENTS, strict=True)
        },
        exit_code=lambda: (stop.server.wait(30), stop.now),
    )
    assert seen["running"][0] == SERVED
    assert 3.4 < seen["running"][1] < 3.7 + LATE
    assert seen["stream"][0] == "whole"
    assert seen["stream"][1] < 4.5 + LATE
    assert seen["halves"] == {SERVED}
    assert seen["body"] == SERVED
    assert seen["reused"] == {SERVED}
    assert [seen[f"idle {moment}"] for moment in MOMENTS] == [SERVED] * 3
    assert seen["ready"] == 503
    assert DELAY - 0.2 < seen["refused"] < DELAY + LATE
    assert DELAY - 0.2 < seen["idle"] < DELAY + LATE
    code, ended = seen["exit_code"]
    assert code == 0, stop.server.output()
    assert 3.4 < ended < DELAY + 4.0 + LATE


@pytest.mark.parametrize("name", [name for name in SIDE_BY_SIDE if KINDS[name].app == ASGI])
def test_websockets_hear_of_it(name, stopping: Callable[[Server], Stop]):
    """They work during the delay, then are closed with 1012, and hold up nothing."""
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    stop = stopping(KINDS[name].start(ours=True, keep_alive=30))
    url = f"ws://{stop.server.host}:{stop.server.port}/ws"
    websocket = stop.opened.enter_context(connect(url, open_timeout=10))
    websocket.send("before")
    assert websocket.recv(5) == "before"
    stop.terminate()
    stop.wait(1.0)
    websocket.send("meanwhile")
    assert websocket.recv(5) == "meanwhile"
    with pytest.raises(ConnectionClosed) as closed:
        websocket.recv(DELAY + LATE)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1012
    assert DELAY - 0.2 < stop.now < DELAY + LATE
    assert stop.server.wait(20) == 0
    assert stop.now < DELAY + 4.0 + LATE


def test_nobody_fails_on_sync_workers(stopping: Callable[[Server], Stop]):
    """Each has one client at a time: a request, a stream, half a head, a body, and free ones."""
    stop = stopping(KINDS["gunicorn sync"].start(ours=True, keep_alive=30, workers=8))
    running, stream = stop.asking("/sleep/4"), stop.asking("/stream/40")
    half, body = stop.client(HEAD), stop.client(BODY)
    stop.terminate()
    seen = together(
        running=lambda: said(running.read()),
        stream=lambda: streams(stream, 40),
        half=lambda: completes(stop, [half]),
        body=lambda: drips(stop, body),
        reused=lambda: reuses(stop),
        refused=lambda: refused_at(stop),
        ready=lambda: readiness(stop),
        exit_code=lambda: (stop.server.wait(30), stop.now),
    )
    assert (seen["running"], seen["stream"]) == (SERVED, "whole")
    assert (seen["half"], seen["body"], seen["reused"]) == ({SERVED}, SERVED, {SERVED})
    assert seen["ready"] == 503
    assert DELAY - 0.2 < seen["refused"] < DELAY + LATE
    code, ended = seen["exit_code"]
    assert code == 0, stop.server.output()
    assert 3.4 < ended < DELAY + 6.0 + LATE
