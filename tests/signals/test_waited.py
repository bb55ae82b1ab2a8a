"""Choosing a source for how long a request has waited, and what happens when it fails."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from resilience_mw.signals.lag import Lag
from resilience_mw.signals.loop import attach
from resilience_mw.signals.proxies import TrustedProxies
from resilience_mw.signals.waited import ARRIVED, MAX_WAIT, choose_asgi, choose_wsgi

LOCAL = TrustedProxies(["127.0.0.1", "unix"])


class Cycle:
    """What a server hands out: `send` belongs to what has the transport."""

    def __init__(self, sock):
        self.transport = self
        self._sock = sock

    def get_extra_info(self, name):
        return self._sock

    async def send(self, message):
        """Write the message."""


NATIVE_SEND: Any = [None].append


async def bare_send(message):
    """Belong to nothing."""


def _scope(*headers, **more) -> dict[str, Any]:
    return {"type": "http", "headers": list(headers), "client": ("127.0.0.1", 1), **more}


def _start(seconds_ago, name=b"x-request-start"):
    return name, f"t={time.time() - seconds_ago:.3f}".encode()


@pytest.fixture
def connection() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Client and server end of a TCP connection that has carried data."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as client,
        listener.accept()[0] as server,
    ):
        client.sendall(b"x")
        yield client, server


@pytest.fixture
def unix_pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Two ends of a Unix connection."""
    first, second = socket.socketpair()
    with first, second:
        yield first, second


def test_nothing_to_go_by():
    """Without any source the answer is "none" and zero."""
    waited = choose_asgi(_scope(), bare_send)
    assert waited.source == "none"
    assert waited(_scope(), bare_send, 5.0) == 0.0
    assert "none" in repr(waited)


def test_the_order_of_the_sources(connection, run):
    """Stamp before socket before loop turn before header before lag."""

    async def main():
        send, meter, lag = Cycle(connection[1]).send, attach(), Lag(1.0)
        stamped = _scope(**{ARRIVED: 1.0})
        everything: dict[str, Any] = {"meter": meter, "lag": lag, "proxies": LOCAL}
        assert choose_asgi(stamped, send, **everything).source == "stamp"
        assert choose_asgi(_scope(), send, **everything).source == "tcp"
        assert choose_asgi(_scope(), bare_send, **everything).source == "turn"
        assert choose_asgi(_scope(), bare_send, lag=lag, proxies=LOCAL).source == "header"
        assert choose_asgi(_scope(), bare_send, lag=lag).source == "lag"
        nobody = TrustedProxies()
        assert choose_asgi(_scope(), bare_send, lag=lag, proxies=nobody).source == "lag"

    run(main)


def test_stamp_is_the_time_since_arrival():
    """Seconds from the stamp to now, within bounds; without a usable stamp, zero."""
    waited = choose_asgi(_scope(**{ARRIVED: 10.0}), bare_send)
    assert waited(_scope(**{ARRIVED: 10.0}), bare_send, 10.75) == 0.75
    assert waited(_scope(**{ARRIVED: 10.0}), bare_send, 9.0) == 0.0
    assert waited(_scope(**{ARRIVED: 10.0}), bare_send, 10_000.0) == MAX_WAIT
    assert waited(_scope(**{ARRIVED: "10"}), bare_send, 11.0) == 0.0
    assert waited(_scope(), bare_send, 11.0) == 0.0


def test_tcp_is_the_age_of_the_data(connection):
    """The kernel's clock runs while nobody looks."""
    send = Cycle(connection[1]).send
    waited = choose_asgi(_scope(), send)
    time.sleep(0.2)
    assert 0.15 <= waited(_scope(), send, time.monotonic()) < 5.0


def test_a_closed_connection_is_measured_by_the_next_source(connection):
    """The choice stands, but one request may need a stand-in."""
    lag = Lag(1.0)
    lag.tick(due=1.0, now=1.5)
    send = Cycle(connection[1]).send
    waited = choose_asgi(_scope(), send, lag=lag)
    connection[1].close()
    assert waited.source == "tcp"
    assert waited(_scope(), send, 1.6) == 0.5
    assert choose_asgi(_scope(), send, lag=lag).source == "tcp", "even if it is the first request"


def test_unix_sockets_have_no_age(unix_pair, run):
    """They fall through to the loop turn."""

    async def main():
        return choose_asgi(_scope(), Cycle(unix_pair[0]).send, meter=attach()).source

    assert run(main) == "turn"


def test_turn_is_a_bound_that_grows_with_the_turn(run):
    """What runs late in a long turn has waited at least that long."""

    async def main():
        waited = choose_asgi(_scope(), bare_send, meter=attach())
        await asyncio.sleep(0.01)
        waited(_scope(), bare_send, time.monotonic())
        time.sleep(0.1)  # noqa: ASYNC251
        return waited(_scope(), bare_send, time.monotonic())

    assert 0.1 <= run(main) < 5.0


def test_requests_from_a_thread_are_bound_by_the_turn_that_runs():
    """They may have come late in the turn before, so that turn is no bound for them."""

    async def main():
        meter, native = attach(), NATIVE_SEND
        await asyncio.sleep(0.01)
        direct = choose_asgi(_scope(), bare_send, meter=meter)
        threaded = choose_asgi(_scope(), native, meter=meter)
        loop = asyncio.get_running_loop()
        loop.call_soon(time.sleep, 0.1)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        now = time.monotonic()
        return direct(_scope(), bare_send, now), threaded(_scope(), native, now)

    direct, threaded = asyncio.run(main())
    assert threaded < direct
    assert direct >= 0.1


def test_turn_yields_to_a_trusted_header_that_says_more(run):
    """The loop knows nothing of the time before it looked; the proxy does."""

    async def main():
        waited = choose_asgi(_scope(), bare_send, meter=attach(), proxies=LOCAL)
        now = time.monotonic()
        told = waited(_scope(_start(7.0)), bare_send, now)
        return waited.source, told, waited(_scope(), bare_send, now)

    source, told, untold = run(main)
    assert source == "turn"
    assert told == pytest.approx(7.0, abs=1.0)
    assert untold < 5.0


def test_a_meter_of_a_closed_loop_is_no_source():
    """libuv cannot be asked any more; the choice goes on without it, and so does a request."""
    import uvloop

    lag = Lag(1.0)

    async def main():
        meter = attach()
        return meter, choose_asgi(_scope(), bare_send, meter=meter, lag=lag, proxies=LOCAL)

    meter, waited = uvloop.run(main())
    assert waited.source == "turn"
    assert waited(_scope(_start(3.0)), bare_send, 1.0) == pytest.approx(3.0, abs=1.0)
    assert choose_asgi(_scope(), bare_send, meter=meter, lag=lag).source == "lag"


@pytest.mark.parametrize("name", [b"x-request-start", b"x-queue-start"])
def test_header_of_a_trusted_proxy(name):
    """Either name, only from whom we trust, and the last one counts."""
    waited = choose_asgi(_scope(), bare_send, proxies=LOCAL)
    assert waited.source == "header"
    assert waited(_scope(_start(2.0, name)), bare_send, 0.0) == pytest.approx(2.0, abs=1.0)
    twice = _scope(_start(99.0, name), _start(2.0, name))
    assert waited(twice, bare_send, 0.0) == pytest.approx(2.0, abs=1.0)
    stranger = {**_scope(_start(2.0, name)), "client": ("8.8.8.8", 1)}
    assert waited(stranger, bare_send, 0.0) == 0.0
    assert waited(_scope((name, b"garbage")), bare_send, 0.0) == 0.0
    assert waited(_scope(), bare_send, 0.0) == 0.0


def test_a_proxy_that_the_client_has_named_is_not_believed():
    """Where the socket is out of reach, the address may be out of the client's own header."""
    waited = choose_asgi(_scope(), bare_send, proxies=LOCAL)
    forged = _scope(_start(2.0), (b"x-forwarded-for", b"127.0.0.1"))
    assert waited(forged, bare_send, 0.0) == 0.0
    honest = _scope(_start(2.0), (b"x-forwarded-for", b"203.0.113.7"))
    assert waited(honest, bare_send, 0.0) == pytest.approx(2.0, abs=1.0)


def test_request_start_is_older_than_queue_start():
    """If both are there, the balancer's is the one that saw the request first."""
    waited = choose_asgi(_scope(), bare_send, proxies=LOCAL)
    both = _scope(_start(1.0, b"x-queue-start"), _start(4.0))
    assert waited(both, bare_send, 0.0) == pytest.approx(4.0, abs=1.0)


def test_the_peer_is_asked_of_the_socket(unix_pair):
    """A proxy-header middleware outside of us makes scope["client"] the client's address."""
    send = Cycle(unix_pair[0]).send
    scope = {**_scope(_start(2.0)), "client": ("8.8.8.8", 0)}
    assert choose_asgi(scope, send, proxies=LOCAL)(scope, send, 0.0) == pytest.approx(2.0, abs=1.0)
    strict = TrustedProxies(["8.8.8.8"])
    assert choose_asgi(scope, send, proxies=strict)(scope, send, 0.0) == 0.0
    unix_pair[0].close()
    assert choose_asgi(scope, send, proxies=LOCAL)(scope, send, 0.0) == 0.0, "closed: who was it?"


def test_a_scope_without_a_client_is_a_unix_socket():
    """Servers set it to None there."""
    scope = {**_scope(_start(2.0)), "client": None}
    trusting = choose_asgi(scope, bare_send, proxies=LOCAL)
    assert trusting(scope, bare_send, 0.0) == pytest.approx(2.0, abs=1.0)
    wary = choose_asgi(scope, bare_send, proxies=TrustedProxies(["127.0.0.1"]))
    assert wary(scope, bare_send, 0.0) == 0.0


def test_wsgi_order_of_the_sources(connection):
    """Stamp before socket before header."""
    environ: dict[str, Any] = {"gunicorn.socket": connection[1]}
    assert choose_wsgi({**environ, ARRIVED: 1.0}, proxies=LOCAL).source == "stamp"
    assert choose_wsgi(environ, proxies=LOCAL).source == "tcp"
    assert choose_wsgi({}, proxies=LOCAL).source == "header"
    assert choose_wsgi({}, proxies=TrustedProxies()).source == "none"


def test_wsgi_values(connection):
    """Each source is read as in ASGI, and a closed connection falls through."""
    assert choose_wsgi({ARRIVED: 1.0})({ARRIVED: 1.0}, 1.5) == 0.5
    assert choose_wsgi({})({}, 1.0) == 0.0
    environ: dict[str, Any] = {
        "werkzeug.socket": connection[1],
        "REMOTE_ADDR": "127.0.0.1",
        "HTTP_X_QUEUE_START": _start(3.0)[1].decode(),
    }
    waited = choose_wsgi(environ, proxies=LOCAL)
    time.sleep(0.15)
    assert 0.1 <= waited(environ, time.monotonic()) < 2.0
    del environ["werkzeug.socket"]
    assert waited(environ, 0.0) == pytest.approx(3.0, abs=1.0)
    environ["HTTP_X_REQUEST_START"] = _start(9.0)[1].decode()
    assert waited(environ, 0.0) == pytest.approx(9.0, abs=1.0)
    environ["REMOTE_ADDR"] = "8.8.8.8"
    assert waited(environ, 0.0) == 0.0
    assert waited({"REMOTE_ADDR": "127.0.0.1"}, 0.0) == 0.0
