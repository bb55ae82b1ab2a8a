"""SIGTERM to a single server: what each kind of client sees, and how the process ends."""

from __future__ import annotations

import signal
import socket
import threading
import time

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from .client import COMBINATIONS, Client, Response, get, launch, times, wait_refused

DELAY = 1.0


def in_background(client: Client, path: str) -> tuple[threading.Thread, list[Response]]:
    """Send a request, and read the response in a thread."""
    got: list[Response] = []
    client.ask(path)
    thread = threading.Thread(target=lambda: got.append(client.read()))
    thread.start()
    return thread, got


@pytest.mark.parametrize("on", COMBINATIONS.values(), ids=list(COMBINATIONS))
def test_everybody_is_served(serve, opened, on):
    """The whole sequence: nobody fails who comes before the server refuses, or was there then."""
    server = serve(launch(*times(delay=DELAY), **on))
    slow, stream, half, *idle = (opened.enter_context(Client(server)) for _ in range(8))
    for client in (slow, half, *idle):
        assert client.get("/before").status == 200
        assert not client.get("/before").closes
    url = f"ws://{server.host}:{server.port}/"
    websocket = opened.enter_context(connect(url, open_timeout=10))
    assert get(server, "/readyz").status == 200
    running, slow_got = in_background(slow, "/slow/2")
    streaming, stream_got = in_background(stream, "/stream/2")
    half.send(b"GET /half HTTP/1.1\r\nHo")
    time.sleep(0.2)

    server.signal(signal.SIGTERM)
    told = time.monotonic()
    time.sleep(0.02)
    answer = idle[0].get("/idle")
    assert (answer.status, answer.closes) == (200, True)
    assert idle[0].ended(5)
    assert get(server, "/readyz").status == 503
    assert get(server, "/livez").status == 200
    websocket.send("still there?")
    assert websocket.recv(5) == "still there?"
    while time.monotonic() < told + 0.6 * DELAY:
        answer = get(server, "/new")
        assert (answer.status, answer.closes) == (200, True)
        time.sleep(0.02)
    answer = idle[1].get("/idle")
    assert (answer.status, answer.closes) == (200, True)

    wait_refused(server, within=5.0)
    assert time.monotonic() - told >= 0.9 * DELAY
    assert running.is_alive(), "refused while a request is still running"
    assert idle[2].ended(5), "an idle connection is closed"
    with pytest.raises(ConnectionClosed) as closed:
        websocket.recv(5)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1012
    half.send(b"st: localhost\r\n\r\n")
    answer = half.read()
    assert (answer.status, answer.closes) == (200, True)
    running.join(10)
    streaming.join(10)
    assert (slow_got[0].status, slow_got[0].body) == (200, b"done")
    assert slow_got[0].closes
    assert stream_got[0].body.endswith(b"19\nend\n")
    assert stream.ended(5)
    assert server.wait(10) == 0
    output = server.output()
    for stage in ("serving on", "not ready any more", "refusing new connections", "stopped, exit"):
        assert output.count(stage) == 1, output
    assert "app: shut down" in output
    assert "app: websocket ended with 1012" in output
    assert "Traceback" not in output


@pytest.mark.parametrize("on", COMBINATIONS.values(), ids=list(COMBINATIONS))
def test_a_client_on_one_connection(serve, opened, on):
    """Twenty requests a second on a connection that is opened anew when it is closed: all served,
    until the server refuses."""
    server = serve(launch(*times(delay=0.5), **on))
    client = opened.enter_context(Client(server))
    statuses = []
    connections = 1
    began = time.monotonic()
    signalled = False
    while True:
        assert time.monotonic() - began < 15
        if not signalled and time.monotonic() - began > 0.3:
            server.signal(signal.SIGTERM)
            signalled = True
        answer = client.get()
        statuses.append(answer.status)
        if answer.closes:
            client.close()
            try:
                client = opened.enter_context(Client(server))
            except ConnectionRefusedError:
                break
            connections += 1
        time.sleep(0.05)
    assert set(statuses) == {200}
    assert connections > 3
    assert server.wait(10) == 0


@pytest.mark.parametrize("on", COMBINATIONS.values(), ids=list(COMBINATIONS))
def test_heads_and_bodies_in_parts(serve, opened, on):
    """Sixteen half-sent heads and a dripping body are answered if they go on, else told so."""
    flags = times(delay=0.2, shutdown=4.0)
    server = serve(launch(*flags, "--deadline-receive-timeout=3", **on))
    heads = [opened.enter_context(Client(server)) for _ in range(16)]
    for head in heads:
        head.send(b"GET / HTTP/1.1\r\nHost: loc")
    body = opened.enter_context(Client(server))
    body.send(b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n")
    time.sleep(0.2)
    server.signal(signal.SIGTERM)
    for _ in range(10):
        body.send(b"x")
        time.sleep(0.1)
    wait_refused(server, within=5.0)
    for head in heads[:8]:
        head.send(b"alhost\r\n\r\n")
    assert [head.read().status for head in heads[:8]] == [200] * 8
    answer = body.read()
    assert (answer.status, answer.body, answer.closes) == (200, b"x" * 10, True)
    assert [head.read().status for head in heads[8:]] == [408] * 8
    assert server.wait(10) == 0, "nothing that anybody had asked for was cut"


def test_a_connection_in_the_queue_is_served(serve, opened):
    """Who is in the kernel's queue when the server stops accepting is let in, not reset."""
    server = serve(launch(*times(delay=0.3)))
    with Client(server) as blocking:
        server.signal(signal.SIGTERM)
        time.sleep(0.1)
        blocking.ask("/block/1")
        time.sleep(0.1)
        waiting = [opened.enter_context(Client(server)) for _ in range(20)]
        for client in waiting:
            client.ask()
        assert [client.read().status for client in waiting] == [200] * 20
        assert blocking.read().status == 200
    assert server.wait(10) == 0


def test_who_waits_in_a_queue_is_refused(serve):
    """At once, with a 503, so that a proxy can try another server; a free slot is still given."""
    server = serve(launch(*times(delay=2.5), app="queued"))
    with Client(server) as running, Client(server) as waiting:
        running.ask("/slow/1.2")
        time.sleep(0.2)
        waiting.ask("/slow/0")
        time.sleep(0.2)
        server.signal(signal.SIGTERM)
        began = time.monotonic()
        answer = waiting.read()
        assert (answer.status, answer.body) == (503, b"Service Busy")
        assert time.monotonic() - began < 0.7
        assert running.read().status == 200
    assert get(server, "/slow/0").status == 200
    assert server.wait(10) == 0


@pytest.mark.parametrize("on", COMBINATIONS.values(), ids=list(COMBINATIONS))
def test_a_request_that_takes_too_long(serve, on):
    """It is cut, named, and costs the exit code; the app still shuts down."""
    server = serve(launch(*times(delay=0.0, shutdown=0.5), **on))
    with Client(server) as client:
        client.ask("/slow/30")
        time.sleep(0.3)
        server.signal(signal.SIGTERM)
        answer = client.read()
        assert (answer.status, answer.closes) == (500, True)
        assert server.wait(10) == 1
    output = server.output()
    assert "app: shut down" in output
    assert "GET '/slow/30' for" in output


def test_a_handler_that_blocks_the_loop(serve):
    """Not even the signal is heard by the loop; the process ends in time and shows where it is."""
    server = serve(launch(*times(delay=0.1, shutdown=0.2)))
    with Client(server) as client:
        client.ask("/block/60")
        time.sleep(0.3)
        server.signal(signal.SIGTERM)
        assert server.wait(10) == 1
    assert "in http" in server.output()


def test_a_shutdown_of_the_app_that_hangs(serve):
    """It is bounded by what is left of the time, and costs the exit code."""
    server = serve(launch(*times(shutdown=0.5), env={"APP_SHUTDOWN": "60"}))
    began = time.monotonic()
    server.signal(signal.SIGTERM)
    assert server.wait(10) == 1
    assert time.monotonic() - began >= 0.5
    assert "own shutdown did not end" in server.output()


def test_a_second_signal(serve):
    """It waits for nothing."""
    server = serve(launch(*times(delay=20.0, shutdown=20.0)))
    with Client(server) as client:
        client.ask("/slow/30")
        time.sleep(0.3)
        server.signal(signal.SIGTERM)
        time.sleep(0.2)
        server.signal(signal.SIGTERM)
        assert client.read().status == 500
        assert server.wait(10) == 1
    assert "app: shut down" in server.output()


@pytest.mark.parametrize("signals", [[signal.SIGINT], [signal.SIGTERM, signal.SIGINT]])
def test_ctrl_c(serve, signals):
    """It skips the delay, also that of a signal before it; with nothing to cut, the code is 0."""
    server = serve(launch(*times(delay=30.0)))
    assert get(server).status == 200
    for number in signals:
        server.signal(number)
        time.sleep(0.1)
    assert server.wait(10) == 0
    assert "app: shut down" in server.output()


def test_a_connection_that_has_sent_nothing(serve, opened):
    """It has a moment to send a request that may be on its way, and holds nobody up."""
    server = serve(launch(*times(shutdown=20.0)))
    silent, late = (opened.enter_context(Client(server)) for _ in range(2))
    time.sleep(0.1)
    server.signal(signal.SIGTERM)
    wait_refused(server, within=5.0)
    assert late.get().status == 200
    assert silent.ended(10)
    assert server.wait(10) == 0


def test_a_client_that_does_not_read(serve):
    """It cannot hold the server up for longer than the time there is."""
    server = serve(launch(*times(shutdown=0.5)))
    with Client(server) as client:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.ask("/big")
        time.sleep(0.3)
        server.signal(signal.SIGTERM)
        assert server.wait(10) == 1
