"""What the port answers, to friends and to others."""

from __future__ import annotations

import select
import socket
import time

import pytest

from benchmarks.process import HOST, free_port
from benchmarks.talk import Client
from resilience_mw import Health, policies
from resilience_mw.core.health import HealthPolicy
from resilience_mw.core.lifecycle import Lifecycle, State
from resilience_mw.health import Check, UpstreamCheck
from resilience_mw.health.listener import answerer
from resilience_mw.health.listener.calls import PlainCalls

from .probing import Port, until


@pytest.fixture(autouse=True, params=["quick", "plain"])
def _calls(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the C library's functions, and as on a system that has none of them, nor ``poll``."""
    if request.param == "plain":
        monkeypatch.setattr(answerer, "calls", PlainCalls)
        monkeypatch.delattr(select, "poll")


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (State.STARTING, (503, 200, 503)),
        (State.READY, (200, 200, 200)),
        (State.DRAINING, (200, 200, 503)),
        (State.STOPPED, (200, 200, 503)),
    ],
)
def test_the_three_probes(opened, state, expected):
    """They say what they say in band, in every state."""
    port, _ = opened(HealthPolicy(lifecycle=Lifecycle(state)))
    assert tuple(map(port.status, ("/startupz", "/livez", "/readyz"))) == expected


def test_an_answer_is_whole_and_the_last(opened):
    """It has a length, says that it closes, and the server does."""
    port, _ = opened()
    with Client(port) as client:
        answer = client.get("/readyz")
        assert (answer.status, answer.body, answer.ended) == (200, b"ok", "complete")
        assert answer.says_close
        assert client.wait_closed() is not None


def test_head_has_no_body(opened):
    """Only the length that it would have."""
    port, _ = opened()
    with socket.create_connection(port[::-1]) as client:
        client.sendall(b"HEAD /livez HTTP/1.1\r\n\r\n")
        head, _, body = b"".join(iter(lambda: client.recv(4096), b"")).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"content-length: 2" in head.lower()
    assert body == b""


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"POST /readyz HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody", 405),
        (b"DELETE /livez HTTP/1.1\r\n\r\n", 405),
        (b"GET /readyz/ HTTP/1.1\r\n\r\n", 404),
        (b"GET / HTTP/1.1\r\n\r\n", 404),
        (b"GET /READYZ HTTP/1.1\r\n\r\n", 404),
        (b"GET /readyz?verbose HTTP/1.1\r\n\r\n", 200),
        (b"hello\r\n\r\n", 400),
        (b"GET /" + b"a" * 20_000, 431),
    ],
)
def test_everything_else(opened, request_, status):
    """Other methods, other paths, no request at all, and too much of one."""
    port, _ = opened()
    with Client(port) as client:
        client.send(request_)
        assert client.read().status == status


def test_a_slow_client_and_a_head_in_pieces(opened):
    """A request may come byte by byte, while others are answered."""
    port, _ = opened()
    with Client(port) as slow:
        for byte in b"GET /readyz HTTP/1.1\r\n\r":
            slow.send(bytes([byte]))
        assert port.status() == 200
        slow.send(b"\n")
        assert slow.read().status == 200


def test_who_says_nothing_is_let_go(opened, monkeypatch):
    """Nobody keeps a connection longer than a few seconds."""
    monkeypatch.setattr(answerer, "PATIENCE", 0.3)
    port, _ = opened()
    with Client(port) as silent:
        silent.send(b"GET /")
        assert silent.wait_closed(10.0) is not None


def test_a_probe_gets_through_whatever_hangs_there(opened):
    """With more idle connections than are kept, the oldest make room."""
    port, _ = opened()
    idle = [socket.create_connection(port[::-1]) for _ in range(answerer.MOST + 20)]
    try:
        for one in idle:
            one.send(b"G")
        assert all(port.status() == 200 for _ in range(5))
    finally:
        for one in idle:
            one.close()


def test_an_answer_that_raises_is_said_once(opened, caplog):
    """The thread lives on, and tells the log what happened the first time."""
    policy = HealthPolicy(lifecycle=Lifecycle(State.READY))
    port, _ = opened(policy)

    def fail() -> None:
        raise RuntimeError("secret")

    policy._answers["/readyz"] = fail  # type: ignore[assignment]
    answers = [port.ask() for _ in range(3)]
    assert [answer and answer.status for answer in answers] == [500, 500, 500]
    assert all(answer and b"secret" not in answer.body for answer in answers)
    assert port.status("/livez") == 200
    assert sum("could not be answered" in one.message for one in caplog.records) == 1


def test_two_apps_in_one_process(opened):
    """Share the port: ready only when both are."""
    first, second = (HealthPolicy(lifecycle=Lifecycle(State.READY)) for _ in range(2))
    port, _ = opened(first)
    opened(second, port.port)
    assert port.status() == 200
    second.drain()
    assert port.status() == 503


def test_a_port_that_is_closed_can_be_opened_again(opened):
    """A process may run one app after another, as tests do."""
    port, apart = opened()
    assert port.status() == 200
    for _ in range(3):
        apart.close()
        _, apart = opened(port=port.port)
        assert port.status() == 200
    apart.close()
    until(lambda: port.ask() is None)
    opened(port=port.port)
    assert port.status() == 200


def test_thousands_of_probes_leave_nothing(opened):
    """Neither descriptors nor threads."""
    import psutil

    port, _ = opened()
    port.status()
    process = psutil.Process()
    before = process.num_fds(), process.num_threads()
    begun = time.monotonic()
    for _ in range(2_000):
        assert port.status("/livez") == 200
        if time.monotonic() - begun > 10:
            break
    until(lambda: process.num_fds() <= before[0])
    assert process.num_threads() == before[1]


@pytest.mark.parametrize(("host", "client"), [("::1", "::1"), ("::", "127.0.0.1"), ("::", "::1")])
def test_over_ipv6(opened, host, client):
    """Also on every address of both kinds."""
    port, _ = opened(host=host)
    assert Port(port.port, client).status() == 200


def test_details_are_for_those_whose_address_is_trusted(opened):
    """The address of the connection counts, over IPv4 and IPv6."""
    asked: list[str | None] = []

    class Recording(HealthPolicy):
        def answer(self, path, method, *, query="", accept="", peer=None):
            asked.append(peer)
            assert (query, accept) == ("verbose", "text/html")
            return super().answer(path, method, query=query, accept=accept, peer=peer)

    port, _ = opened(Recording(lifecycle=Lifecycle(State.READY)), host="::")
    for host in ("::1", "127.0.0.1"):
        with Client(Port(port.port, host)) as client:
            client.ask("/readyz?verbose", "Accept: text/html\r\n")
            assert client.read().status == 200
    assert asked == ["::1", "::ffff:127.0.0.1"]


def test_checks_and_the_forwarded_status_are_answered_here_too(opened):
    """As in band, from what is known already."""
    up = [False]
    health = Health(
        checks={
            "up": Check(lambda: up[0], interval=0.05),
            "next": UpstreamCheck(f"http://{HOST}:{free_port()}/", critical=False),
        },
        forward_path="/status",
        failure_status=404,
    )
    (policy,) = policies.for_health(health)
    assert isinstance(policy, HealthPolicy)
    policy.lifecycle.advance(State.READY)
    port, _ = opened(policy)
    assert (port.status("/readyz"), port.status("/status")) == (503, 404)
    up[0] = True
    until(lambda: port.status("/readyz") == 200)
    up[0] = False
    until(lambda: port.status("/readyz") == 503)
    assert port.status("/livez") == 200
    assert policy.checks is not None
    policy.checks.close()


def test_an_app_that_closes_takes_its_loop_with_it(opened):
    """What is left of the process is not stuck because the other loop beats no more."""
    port, first = opened(stuck_after=0.2)
    _, second = opened(port=port.port, stuck_after=0.2)
    first.heartbeat.at = time.monotonic()
    until(lambda: port.status("/livez") == 503)
    first.close()
    assert port.status("/livez") == 200
    second.heartbeat.at = time.monotonic()
    until(lambda: port.status("/livez") == 503)
