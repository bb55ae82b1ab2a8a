"""TLS in the server itself: heads, idle connections, refusals and the stop are as without it."""

from __future__ import annotations

import signal
import ssl
import time

import pytest

from benchmarks.process import Server
from benchmarks.talk import Client
from tests.runner_gunicorn.launch import together

HEAD = b"GET / HTTP/1.1\r\nHost: te"
BODY = b"POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 1000\r\n\r\nsome"

LATE = 4.0
"""Seconds a busy machine may add."""

UVICORN = ["httptools-asyncio", "httptools-uvloop", "h11-asyncio"]
SERVERS = [*UVICORN, "gthread"]


def ending(client: Client, start: bytes, drip: bytes = b"") -> tuple[int, str, float]:
    """Send a beginning, then perhaps drips; tell the status, the end, and when it was."""
    began = time.monotonic()
    client.send(start)
    answer = client.read(0.25 if drip else 9.0)
    while answer.ended == "timeout" and time.monotonic() - began < 9.0:
        client.send(drip)
        answer = client.read(0.25)
    return answer.status, answer.ended, time.monotonic() - began


def accepts(server: Server) -> bool:
    """Whether somebody listens."""
    try:
        Client(server).close()
    except ConnectionRefusedError:
        return False
    return True


@pytest.mark.parametrize("name", SERVERS)
def test_slow_clients(name, launch, connect):
    """Each has its time, also the one that never begins the handshake."""
    server = launch(name)
    silent, half, dripped, body, fed, idle = (connect(server) for _ in range(6))
    mute = Client(server)
    assert idle.get("/").ok
    seen = together(
        mute=lambda: ending(mute, b""),
        silent=lambda: ending(silent, b""),
        half=lambda: ending(half, HEAD),
        dripped=lambda: ending(dripped, HEAD, b"s"),
        body=lambda: ending(body, BODY),
        fed=lambda: ending(fed, BODY, b"s"),
        idle=lambda: ending(idle, b""),
    )
    mute.close()
    times = {"mute": 1.0, "silent": 1.0, "half": 1.0, "dripped": 1.0}
    for what, seconds in (times | {"body": 2.0, "fed": 2.0, "idle": 1.5}).items():
        assert seen[what][1] != "timeout", what
        assert 0.6 * seconds < seen[what][2] < seconds + LATE, what
    statuses = {what: status for what, (status, _, _) in seen.items()}
    # Whoever drips may write into the closed connection, and then cannot read the answer.
    assert {statuses.pop("dripped"), statuses.pop("fed")} <= {408, 0}
    assert statuses == {"mute": 0, "silent": 408, "half": 408, "body": 408, "idle": 0}


@pytest.mark.parametrize("name", SERVERS)
def test_a_stop(name, launch, connect):
    """Not ready at once, everybody is served to the end, then nobody is let in; exit code 0."""
    server = launch(name, runner_keep_alive_timeout="20", runner_headers_timeout="5")
    running, stream, half, idle, asking = (connect(server) for _ in range(5))
    for client in (idle, asking):
        assert client.get("/").ok
    running.ask("/sleep/3")
    stream.ask("/stream/30")
    half.send(HEAD)
    time.sleep(0.3)
    assert connect(server).get("/readyz").status == 200
    server.signal(signal.SIGTERM)
    told = time.monotonic()
    time.sleep(0.2)
    ready = connect(server).get("/readyz")
    assert (ready.status, ready.says_close) == (503, True)
    new = connect(server).get("/")
    assert (new.ok, new.says_close) == (True, True)
    asking.ask("/")
    answer = asking.read()
    assert (answer.ok, answer.says_close) == (True, True)
    half.send(b"st\r\n\r\n")
    assert half.read().ok
    assert idle.wait_closed(1.5 + LATE) is not None
    assert time.monotonic() - told > 1.2
    while accepts(server):
        assert time.monotonic() - told < 1.5 + LATE
        time.sleep(0.05)
    assert running.read().ok
    assert stream.read().body.count(b"piece") == 30
    assert server.wait(10) == 0, server.output()


@pytest.mark.parametrize("name", UVICORN)
def test_a_handshake_that_never_ends_holds_up_no_stop(name, launch):
    """Nor does it cost the exit code."""
    server = launch(name, runner_drain_delay="0", runner_headers_timeout="30")
    mute = Client(server)
    time.sleep(0.2)
    server.signal(signal.SIGTERM)
    assert server.wait(8) == 0
    mute.close()


@pytest.mark.parametrize("name", SERVERS)
def test_a_refusal(name, launch, connect):
    """It is a 503 with a time to come back, on a connection that stays."""
    server = launch(name, limit_max_concurrent_requests="1")
    running, other = connect(server), connect(server)
    running.ask("/sleep/1.2")
    time.sleep(0.3)
    for _ in range(3):
        answer = other.get("/")
        assert (answer.status, answer.body) == (503, b"Service Busy")
    assert running.read().ok
    assert other.get("/").ok


@pytest.mark.parametrize("name", SERVERS)
def test_the_certificate_is_the_one_given(name, launch):
    """A client that does not know who signed it does not connect."""
    server = launch(name)
    with Client(server) as client, pytest.raises(ssl.SSLCertVerificationError):
        ssl.create_default_context().wrap_socket(client.socket, server_hostname=server.host)
