"""Clients that leave while they wait, and how that is known."""

from __future__ import annotations

import os
import socket
import threading
import time

import pytest

from resilience_mw.core import AIMD, AdaptiveGate, Gate
from resilience_mw.wsgi import Guard
from resilience_mw.wsgi.exchange import client_left

from .harness import PATIENCE, begin, call, hello, until


@pytest.fixture
def pair():
    """A connection: the server's side and the client's."""
    listener = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(listener.getsockname())
    server, _ = listener.accept()
    with listener, client, server:
        yield server, client


def left(server) -> bool:
    """Ask about the client of that socket."""
    return client_left({"gunicorn.socket": server})


def test_without_a_socket_nobody_is_known_to_have_left():
    """Most servers do not show it."""
    assert client_left({}) is False


def test_a_client_that_closes_is_known_to_have_left(pair):
    """And one that is silent, or sends on, is not."""
    server, client = pair
    assert not left(server)
    client.sendall(b"more")
    until(lambda: server.recv(1, socket.MSG_PEEK))
    assert not left(server)
    assert server.recv(4) == b"more"
    client.close()
    until(lambda: left(server))


def test_a_client_that_resets_is_known_to_have_left(pair):
    """An error is no client either."""
    server, client = pair
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    client.close()
    until(lambda: left(server))


def test_a_closed_socket_has_no_client(pair):
    """The server has given up on it."""
    server, _ = pair
    server.close()
    assert left(server)


def test_asking_never_waits(pair):
    """A socket with a timeout would wait for it, whatever the flags say."""
    server, _ = pair
    for timeout in (30.0, None, 0.0):
        server.settimeout(timeout)
        began = time.monotonic()
        assert not left(server)
        assert time.monotonic() - began < 5.0


def test_a_gevent_socket_does_not_block(pair):
    """It waits for something to read, unless the socket inside is asked."""
    gevent = pytest.importorskip("gevent.socket")
    server, client = pair
    cooperative = gevent.socket(fileno=os.dup(server.fileno()))
    try:
        began = time.monotonic()
        assert not left(cooperative)
        assert time.monotonic() - began < 5.0
        client.close()
        until(lambda: left(cooperative))
    finally:
        cooperative.close()


def test_a_tls_socket_says_nothing():
    """It knows no flags."""

    class Encrypted:
        def gettimeout(self):
            return None

        def recv(self, size, flags):
            raise ValueError("non-zero flags not allowed in calls to recv() on SSLSocket")

    assert not left(Encrypted())


@pytest.mark.parametrize("gone", [True, False])
def test_waitress_is_asked_by_its_own_function(gone):
    """It knows better than the socket."""
    assert client_left({"waitress.client_disconnected": lambda: gone}) is gone


def test_a_client_that_left_the_queue_costs_nothing(pair):
    """Its handler never runs, and it is not counted as refused."""
    server, client = pair
    gate = Gate(1, max_queue=1, max_wait=PATIENCE)
    guard = Guard(hello, gate)
    holder = begin(guard)
    statuses = []
    facts = {"gunicorn.socket": server}
    waiter = threading.Thread(target=lambda: statuses.append(call(guard, **facts)))
    waiter.start()
    until(lambda: guard.snapshot().queued == 1)
    client.close()
    waiter.join(PATIENCE)
    assert statuses == [(503, b"Service Busy")]
    assert (gate.queued, gate.inflight, gate.refused) == (0, 1, {})
    holder.read()
    assert gate.inflight == 0


@pytest.mark.parametrize("error", [OSError, SystemExit])
def test_an_error_while_waiting_gives_the_place_up(error):
    """Whatever interrupts a waiting thread."""

    def fail():
        raise error

    gate = Gate(1, max_queue=1, max_wait=PATIENCE)
    outer = Gate(5)
    guard = Guard(hello, outer, gate)
    gate.inflight = 1
    with pytest.raises(error):
        call(guard, **{"waitress.client_disconnected": fail})
    assert (gate.queued, gate.inflight, outer.inflight) == (0, 1, 0)
    gate.inflight = 0
    assert call(guard) == (200, b"ok")


def test_waiting_threads_tick_the_gate_they_wait_at():
    """A window may end while everybody waits, and make room."""

    class Growing(AIMD):
        def update(self, window):
            self.limit = 2
            return 2

    law = Growing(initial_limit=1, max_limit=5, window=0.05)
    gate = AdaptiveGate(law, max_queue=1)
    guard = Guard(hello, gate)
    holder = begin(guard)
    assert call(guard) == (200, b"ok")
    assert law.limit == 2
    holder.read()
