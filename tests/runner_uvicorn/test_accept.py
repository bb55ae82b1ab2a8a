"""Accepting: many in a turn of the loop, on every kind of address, and with nothing left over."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
import time

import pytest
import uvloop

from resilience_mw.runner.uvicorn import accept
from resilience_mw.runner.uvicorn.accept import Acceptor, address_of, bind

from .client import Client, launch, times

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


class Echo(asyncio.Protocol):
    """Sends back what it gets."""

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.transport.write(data)
        self.transport.close()


def ask(address, family=socket.AF_INET) -> bytes:
    """Send something, and return what comes back."""
    with socket.socket(family) as client:
        client.settimeout(10)
        client.connect(address)
        client.sendall(b"hello")
        return client.recv(100)


@pytest.mark.parametrize("loop", LOOPS.values(), ids=list(LOOPS))
@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "unix"])
def test_addresses(loop, host, tmp_path):
    """IPv4, IPv6, names and Unix sockets, also over the socket of an earlier run."""
    path = str(tmp_path / "socket")
    for _ in range(2):
        unix = host == "unix"
        sock = bind("", 0, uds=path) if unix else bind(host, 0)

        async def main(sock: socket.socket = sock) -> bytes:
            acceptor = Acceptor(sock, Echo)
            got = await asyncio.to_thread(ask, sock.getsockname(), sock.family)
            acceptor.close()
            acceptor.close()
            await acceptor.settled(10.0)
            return got

        name = sock.getsockname()
        where = address_of(sock, tls=False)
        with asyncio.Runner(loop_factory=loop) as runner:
            assert runner.run(main()) == b"hello"
        assert where == (f"unix:{path}" if unix else where)
        assert unix or str(name[1]) in where
        assert "[::1]" in where or host != "::1"


def test_a_file_is_nobodys_socket(tmp_path):
    """What is no socket is not removed."""
    path = tmp_path / "file"
    path.write_text("precious")
    with pytest.raises(OSError, match="in use"):
        bind("", 0, uds=str(path))
    assert path.read_text() == "precious"


def test_a_socket_that_somebody_else_has_bound():
    """Systemd passes descriptors."""
    with socket.socket() as theirs:
        theirs.bind(("127.0.0.1", 0))
        with bind("", 0, fd=theirs.fileno()) as ours:
            assert ours.getsockname() == theirs.getsockname()


@pytest.mark.parametrize("loop", LOOPS.values(), ids=list(LOOPS))
def test_who_waits_is_let_in_before_the_end(loop):
    """Closing takes in those who are in the kernel's queue; those who come later are refused."""

    async def main() -> list[bytes]:
        sock = bind("127.0.0.1", 0)
        address = sock.getsockname()
        acceptor = Acceptor(sock, Echo)
        clients = [socket.create_connection(address, timeout=10) for _ in range(50)]
        acceptor.close()
        await acceptor.settled(10.0)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address)
        for client in clients:
            client.sendall(b"hello")
        got = await asyncio.gather(*(asyncio.to_thread(client.recv, 100) for client in clients))
        for client in clients:
            client.close()
        return got

    with asyncio.Runner(loop_factory=loop) as runner:
        assert runner.run(main()) == [b"hello"] * 50


@pytest.mark.parametrize("loop", LOOPS.values(), ids=list(LOOPS))
def test_without_descriptors_it_pauses(loop, monkeypatch, caplog):
    """Rather than to turn the loop over and over; then it goes on."""
    monkeypatch.setattr(accept, "PAUSE", 0.2)

    class Poor(socket.socket):
        failures = 3

        def accept(self):
            if self.failures:
                self.failures -= 1
                raise OSError(24, "Too many open files")
            return super().accept()

    async def main() -> bytes:
        sock = Poor()
        sock.bind(("127.0.0.1", 0))
        acceptor = Acceptor(sock, Echo)
        got = await asyncio.to_thread(ask, sock.getsockname())
        acceptor.close()
        return got

    with caplog.at_level(logging.ERROR), asyncio.Runner(loop_factory=loop) as runner:
        began = time.monotonic()
        assert runner.run(main()) == b"hello"
        assert time.monotonic() - began >= 0.5
    assert caplog.text.count("Too many open files") == 3


def test_new_clients_do_not_wait_for_a_turn_each(serve):
    """Under uvloop, with turns of 100 ms: forty new clients are let in together, not one a turn."""
    server = serve(launch(*times(), "--no-backpressure-enabled", loop="uvloop"))
    ended = threading.Event()

    def keep_busy() -> None:
        with Client(server) as client:
            while not ended.is_set():
                client.get("/block/0.1")

    busy = [threading.Thread(target=keep_busy) for _ in range(2)]
    for thread in busy:
        thread.start()
    time.sleep(0.3)
    clients = [Client(server) for _ in range(40)]
    began = time.monotonic()
    for client in clients:
        client.ask("/livez")
    assert [client.read().status for client in clients] == [200] * 40
    took = time.monotonic() - began
    ended.set()
    for thread in busy:
        thread.join(10)
    for client in clients:
        client.close()
    assert took < 40 * 0.1 / 2


def test_no_descriptor_is_left_over():
    """A closed acceptor has given everything back."""

    async def main() -> None:
        sock = bind("127.0.0.1", 0)
        acceptor = Acceptor(sock, Echo)
        assert await asyncio.to_thread(ask, sock.getsockname()) == b"hello"
        acceptor.close()
        await asyncio.sleep(0.05)
        assert sock.fileno() == -1

    with asyncio.Runner() as runner:
        runner.run(main())
    before = len(os.listdir("/proc/self/fd"))
    with asyncio.Runner() as runner:
        runner.run(main())
    assert len(os.listdir("/proc/self/fd")) == before
