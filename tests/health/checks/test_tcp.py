"""A TCP check passes as soon as somebody listens."""

from __future__ import annotations

import asyncio
import socket

import pytest

from benchmarks.process import free_port
from resilience_mw.health import TcpCheck
from resilience_mw.health.address import Address
from resilience_mw.health.connecting import Connector
from tests.health.checks.asking import PASSED, ask


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_passes_when_somebody_listens(host):
    """And leaves nothing open behind it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert ask(TcpCheck(host, listener.getsockname()[1], timeout=10)) == PASSED
        connection, _ = listener.accept()
        with connection:
            assert connection.recv(1) == b""


def test_fails_when_nobody_does():
    """At once."""
    assert ask(TcpCheck("127.0.0.1", free_port(), timeout=10)) == "refused"


def test_a_full_queue_is_a_timeout():
    """The kernel answers no more when nobody accepts."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        where = listener.getsockname()
        host, port = where
        waiting = [socket.socket() for _ in range(4)]
        try:
            for client in waiting:
                client.setblocking(False)
                client.connect_ex(where)
            assert ask(TcpCheck(host, port, timeout=0.3)) == "timeout"
        finally:
            for client in waiting:
                client.close()


def test_the_next_address_of_a_name_is_tried(monkeypatch):
    """The first swallows packets: it gets its share of the time, not all of it."""
    real = socket.getaddrinfo
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = listener.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        for client in waiting:
            client.setblocking(False)
            client.connect_ex(full.getsockname())

        def two(host: str, *args: object, **options: object) -> list[object]:
            if host != "two.example":
                return list(real(host, *args, **options))  # type: ignore[arg-type]
            if options.get("flags"):
                raise socket.gaierror(socket.EAI_NONAME, "not numeric")
            kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
            return [(*kind, full.getsockname()), (*kind, ("127.0.0.1", port))]

        monkeypatch.setattr("socket.getaddrinfo", two)
        try:
            assert ask(TcpCheck("two.example", port, timeout=1.0)) == PASSED
        finally:
            for client in waiting:
                client.close()


def test_nobody_is_not_itself(monkeypatch: pytest.MonkeyPatch):
    """A connection can meet itself: the kernel gave it, as its own, the port that it asks for."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        where = found.getsockname()

    class Unlucky(socket.socket):
        """Has that port already, which else takes a few thousand attempts."""

        def __init__(self, *arguments: int) -> None:
            super().__init__(*arguments)
            if self.family == socket.AF_INET:  # the event loop has others
                self.bind(where)

    monkeypatch.setattr("resilience_mw.health.connecting.socket.socket", Unlucky)
    assert asyncio.run(_try(where)) == "ConnectionRefusedError"


async def _try(where: tuple[str, int]) -> str:
    try:
        connection = await Connector(Address(*where)).open(10)
    except OSError as error:
        return type(error).__name__
    connection.close()
    return "connected"
