"""Slow clients and idle connections: each has its time, on every parser and loop."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from benchmarks.process import Server

from .client import COMBINATIONS, Client, launch, timed, times

HEADERS = 0.6
KEEP_ALIVE = 0.4
LATE = 5.0
"""Seconds a busy machine may add."""


@pytest.fixture(scope="module", params=COMBINATIONS.values(), ids=list(COMBINATIONS))
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server with short times, for all tests here."""
    flags = [*times(headers=HEADERS, keep_alive=KEEP_ALIVE), "--deadline-receive-timeout=0.6"]
    with launch(*flags, **request.param) as server:
        yield server


def timed_out(client: Client) -> None:
    """Read the 408 that ends the connection."""
    response = client.read()
    assert response.status == 408
    assert response.closes
    assert response.body == b"Request Timeout"
    assert client.ended(LATE)


def test_a_client_that_sends_nothing(server):
    """It gets a 408."""
    with Client(server) as client, timed(0.5 * HEADERS, HEADERS + LATE):
        timed_out(client)


def test_half_a_head(server):
    """A head that stalls ends with a 408."""
    with Client(server) as client, timed(0.5 * HEADERS, HEADERS + LATE):
        client.send(b"GET / HTTP/1.1\r\nHost: local")
        timed_out(client)


def test_a_head_in_drips(server):
    """The time is for the whole head: bytes do not buy more of it."""
    head = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * 1000
    with Client(server) as client, timed(0.5 * HEADERS, HEADERS + LATE):
        client.socket.settimeout(0.05)
        for position in range(len(head)):
            client.send(head[position : position + 1])
            try:
                if client.socket.recv(1, 2):  # MSG_PEEK
                    break
            except TimeoutError:
                continue
        client.socket.settimeout(LATE)
        timed_out(client)


def test_half_a_second_head(server):
    """A kept connection has the same time for its next head, from its first byte."""
    with Client(server) as client:
        assert client.get().status == 200
        time.sleep(0.1)
        with timed(0.5 * HEADERS, HEADERS + LATE):
            client.send(b"GET / HTTP/1.1\r\nHo")
            timed_out(client)


def test_half_a_head_behind_a_request(server):
    """The time of a head that began during another request begins when that one is done."""
    with Client(server) as client:
        client.send(b"GET /slow/0.2 HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HT")
        assert client.read().status == 200
        with timed(0.5 * HEADERS, HEADERS + LATE):
            timed_out(client)


def test_an_idle_connection(server):
    """It is good for `keep_alive_timeout`, and then closed without a word."""
    with Client(server) as client:
        for _ in range(3):
            assert client.get().status == 200
            time.sleep(0.3 * KEEP_ALIVE)
        with timed(0.0, KEEP_ALIVE + LATE):
            assert client.ended(KEEP_ALIVE + LATE)


def test_a_served_request_has_no_such_time(server):
    """Neither of the two cuts a response that takes longer."""
    with Client(server) as client:
        assert client.get(f"/slow/{2 * HEADERS}").body == b"done"
        assert client.get("/stream/1").body.endswith(b"end\n")


@pytest.mark.parametrize("pause", [0.1, 5.0], ids=["dripped", "stalled"])
def test_a_body_that_does_not_end(server, pause):
    """The whole request has to be there in time, else 408 and close."""
    with Client(server) as client, timed(0.3, 0.6 + LATE):
        client.send(b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900\r\n\r\n")
        client.socket.settimeout(pause)
        for _ in range(50):
            client.send(b"x")
            try:
                if client.socket.recv(1, 2):  # MSG_PEEK
                    break
            except TimeoutError:
                continue
        client.socket.settimeout(LATE)
        response = client.read()
        assert response.status == 408
        assert response.closes
        assert client.ended(LATE)


def test_a_request_is_stamped_with_its_arrival(server):
    """The stamp tells of the time before the loop came to look at the socket."""
    with Client(server) as blocking, Client(server) as client:
        assert client.get("/arrived").status == 200
        blocking.ask("/block/0.6")
        time.sleep(0.2)
        client.ask("/arrived")
        waited = float(client.read().body)
        assert 0.2 <= waited <= 0.6 + LATE
        assert float(client.get("/arrived").body) < 0.2, "the next request has a stamp of its own"


def test_the_time_for_the_whole_request_bounds_that_for_its_head(serve):
    """As on Gunicorn: the shorter of the two counts, from the first byte."""
    server = serve(launch(*times(headers=30), "--deadline-receive-timeout=0.6"))
    with Client(server) as client:
        time.sleep(0.3)
        with timed(0.4, 0.6 + LATE):
            client.send(b"GET / HTTP/1.1\r\nHost: local")
            timed_out(client)


@pytest.mark.skipif(not os.environ.get("SLOW"), reason="takes a minute; set SLOW=1")
def test_a_connection_outlives_the_idle_time_of_a_balancer(serve):
    """With the defaults, what was idle for the 60 s of a balancer is still good."""
    server = serve(launch("--runner-drain-delay=0"))
    with Client(server) as client:
        assert client.get().status == 200
        time.sleep(61.0)
        assert client.get().status == 200
