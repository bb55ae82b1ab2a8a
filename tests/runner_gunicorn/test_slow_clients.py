"""What each worker class does with clients that take their time."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from benchmarks.process import Server
from benchmarks.talk import Answer, Client, get

from .launch import CLASSES, LOOPS, launch, together

HEAD = b"GET / HTTP/1.1\r\nHost: te"
BODY = b"POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 1000\r\n\r\nsome"
LATE = 2.5
"""Seconds that a shared machine may add to any time."""

SIDE_BY_SIDE = [worker for worker in CLASSES if worker != "sync"]


def slow(server: Server, start: bytes, drip: bytes = b"") -> Answer:
    """Send a beginning and then nothing, or something every quarter of a second."""
    with Client(server) as client:
        client.send(start)
        answer = client.read(0.25 if drip else 8.0)
        while answer.ended == "timeout" and client.age < 8.0:
            client.send(drip)
            answer = client.read(0.25)
        return answer


def second(server: Server, start: bytes) -> Answer:
    """Use a connection once, then send only the beginning of another request."""
    with Client(server) as client:
        assert client.get("/").ok
        client.opened = time.monotonic()
        client.send(start)
        return client.read(8.0)


@pytest.mark.parametrize("worker", SIDE_BY_SIDE)
def test_no_slow_client_is_waited_for_forever(worker, serve: Callable[[Server], Server]):
    """Each is answered 408 or closed when its time is up, and nobody else notices."""
    server = serve(launch(worker))
    seen = together(
        silent=lambda: slow(server, b""),
        half_head=lambda: slow(server, HEAD),
        dripped_head=lambda: slow(server, HEAD, b"s"),
        stalled_body=lambda: slow(server, BODY),
        dripped_body=lambda: slow(server, BODY, b"s"),
        idle=lambda: second(server, b""),
        second_head=lambda: second(server, HEAD),
        others=lambda: [get(server).at for _ in range(20)],
    )
    for name in ("silent", "half_head", "dripped_head", "second_head"):
        assert (name, seen[name].status, seen[name].says_close) == (name, 408, True)
        assert 0.8 < seen[name].at < 1.0 + LATE
    for name in ("stalled_body", "dripped_body"):
        assert (name, seen[name].status) == (name, 408)
        assert 1.8 < seen[name].at < 2.0 + LATE
    assert seen["idle"].status == 0
    assert seen["idle"].ended == "closed"
    assert 1.3 < seen["idle"].at < 1.5 + LATE
    assert max(seen["others"]) < LATE


@pytest.mark.parametrize(
    ("start", "drip"), [(HEAD, b""), (HEAD, b"s"), (BODY, b"s")], ids=["head", "dripped", "body"]
)
def test_a_sync_worker_answers_slow_clients_and_lives(
    start, drip, serve: Callable[[Server], Server]
):
    """It is not killed for them, although it can do nothing else meanwhile."""
    server = serve(launch("sync"))
    pid = get(server, "/pid").body
    assert slow(server, start, drip).status == 408
    assert get(server, "/pid").body == pid


def test_a_sync_worker_answers_before_its_master_would_kill_it(serve: Callable[[Server], Server]):
    """Gunicorn's timeout bounds the deadlines where it is the shorter one."""
    server = serve(launch("sync", "--timeout", "2", runner_headers_timeout="60"))
    answer = slow(server, HEAD)
    assert answer.status == 408
    assert answer.at < 1.6 + LATE
    assert "WORKER TIMEOUT" not in server.output()


def test_half_sent_heads_hold_no_thread(serve: Callable[[Server], Server]):
    """Sixteen of them against eight threads: everybody else is served as if they were not there."""
    server = serve(launch("gthread", runner_headers_timeout="6", deadline_receive_timeout="6"))
    halves = [Client(server) for _ in range(16)]
    for half in halves:
        half.send(HEAD)
    time.sleep(0.3)
    for _ in range(10):
        answer = get(server)
        assert answer.ok
        assert answer.at < LATE
    for half in halves:
        assert half.send(b"st\r\n\r\n")
        assert half.read().ok
        half.close()


def test_a_client_that_will_not_close_holds_up_nobody(serve: Callable[[Server], Server]):
    """The server has half-closed the connection, and waits for the rest beside its work."""
    server = serve(launch("gthread"))
    stubborn = [Client(server) for _ in range(3)]
    for client in stubborn:
        client.ask("/", head="Connection: close\r\n")
        assert client.read().ok
    started = time.monotonic()
    for _ in range(5):
        assert get(server).ok
    assert time.monotonic() - started < 1.5  # two seconds for each of them without us
    for client in stubborn:
        client.close()


@pytest.mark.parametrize("worker", SIDE_BY_SIDE)
def test_a_request_in_pieces_arrives_whole(worker, serve: Callable[[Server], Server]):
    """Heads and bodies in pieces, and several requests in one, are none the worse for it."""
    server = serve(launch(worker))
    with Client(server) as client:
        for piece in (
            b"POST /ec",
            b"ho HTTP/1.1\r\nHost: x\r\nContent-Le",
            b"ngth: 6\r\n\r",
            b"\n",
        ):
            client.send(piece)
            time.sleep(0.05)
        for piece in (b"abc", b"def"):
            client.send(piece)
            time.sleep(0.05)
        assert client.read().body == b"abcdef"
        client.send(b"GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\nGET ")
        assert client.read().ok
        assert client.read().ok
        client.send(b"/c HTTP/1.1\r\nHost: x\r\n\r\n")
        assert client.read().ok


@pytest.mark.parametrize("worker", SIDE_BY_SIDE)
def test_a_head_begun_with_the_request_before_has_its_time(
    worker, serve: Callable[[Server], Server]
):
    """Its clock starts although nothing arrives any more."""
    server = serve(launch(worker, runner_keep_alive_timeout="5"))
    with Client(server) as client:
        client.send(b"GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET ")
        assert client.read().ok
        answer = client.read(6.0)
        assert answer.status == 408
        assert answer.at < 1.0 + LATE


@pytest.mark.parametrize("worker", LOOPS)
def test_a_websocket_outlives_the_deadline_for_heads(worker, serve: Callable[[Server], Server]):
    """What has been upgraded is no request that is still to come."""
    from websockets.sync.client import connect

    server = serve(launch(worker))
    with connect(f"ws://{server.host}:{server.port}/ws", open_timeout=5) as websocket:
        time.sleep(2.0)
        websocket.send("still there")
        assert websocket.recv(5) == "still there"
