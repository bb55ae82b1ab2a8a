"""What the kernel tells of real sockets."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from resilience_mw.signals import descriptor, tcp
from resilience_mw.signals.tcp import (
    Listener,
    accept_queue,
    has_tcp_info,
    listening_sockets,
    tcp_age,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="TCP_INFO is Linux's")


@pytest.fixture(params=["127.0.0.1", "::1"], ids=["IPv4", "IPv6"])
def listener(request) -> Iterator[socket.socket]:
    """A socket that listens and is never accepted from, unless a test does."""
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    try:
        sock = socket.create_server((request.param, 0), family=family, backlog=50)
    except OSError as error:
        pytest.skip(f"no {request.param} here: {error}")
    with sock:
        yield sock


def _connect(listener: socket.socket) -> socket.socket:
    return socket.create_connection(listener.getsockname()[:2], timeout=5)


def test_age_grows_from_the_last_data(listener):
    """After 0.2 s of silence the connection is 0.2 s old; new data makes it young again."""
    with _connect(listener) as client, listener.accept()[0] as server:
        client.sendall(b"one")
        server.recv(3)
        time.sleep(0.2)
        old = tcp_age(server)
        assert old is not None
        assert 0.15 <= old < 5.0
        time.sleep(0.3)
        client.sendall(b"two")
        server.recv(3)
        young = tcp_age(server)
        assert young is not None
        assert 0.0 <= young < 0.3


def test_age_is_told_of_unread_data(listener):
    """Data counts from its arrival, not from when it was read: this is what a queue looks like."""
    with _connect(listener) as client:
        client.sendall(b"request")
        time.sleep(0.2)
        with listener.accept()[0] as server:
            assert 0.15 <= (tcp_age(server) or 0.0) < 5.0


def test_age_of_a_descriptor(listener):
    """A plain descriptor will do, and stays open."""
    with _connect(listener) as client, listener.accept()[0] as server:
        client.sendall(b"x")
        time.sleep(0.1)
        age = tcp_age(server.fileno())
        assert age is not None
        assert 0.05 <= age < 5.0
        assert server.recv(1) == b"x"


def test_age_through_a_transport(run):
    """asyncio's and uvloop's stand-ins for a socket answer too, and raise nothing once closed."""

    async def main():
        loop = asyncio.get_running_loop()
        made = loop.create_future()

        class Server(asyncio.Protocol):
            def connection_made(self, transport):
                made.set_result(transport)

        server = await loop.create_server(Server, "127.0.0.1", 0)
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"x")
        transport = await made
        await asyncio.sleep(0.15)
        sock = transport.get_extra_info("socket")
        assert has_tcp_info(sock)
        age = tcp_age(sock)
        transport.close()
        writer.close()
        await asyncio.sleep(0.01)
        server.close()
        return age, tcp_age(sock)

    age, after = run(main)
    assert 0.1 <= age < 5.0
    assert after is None


def test_accept_queue_counts_who_waits(listener):
    """Three clients that nobody accepts are three in the queue; accepting one leaves two."""
    assert accept_queue(listener) == 0
    clients = [_connect(listener) for _ in range(3)]
    assert accept_queue(listener) == 3
    assert accept_queue(listener.fileno()) == 3
    accepted, _ = listener.accept()
    assert accept_queue(listener) == 2
    assert accept_queue(accepted) is None, "a connection has no accept queue"
    for sock in (accepted, *clients):
        sock.close()


def test_what_is_not_tcp_has_no_answer(tmp_path):
    """Unix sockets, UDP, files, closed and impossible descriptors: None, never an error."""
    closed = socket.socket()
    closed.close()
    with (
        socket.socket(socket.AF_UNIX) as unix,
        socket.socket(socket.AF_UNIX) as unix_listener,
        socket.socket(type=socket.SOCK_DGRAM) as udp,
        open(os.devnull, "rb") as file,
    ):
        unix_listener.bind(str(tmp_path / "socket"))
        unix_listener.listen()
        for odd in (
            unix,
            unix_listener,
            unix.fileno(),
            unix_listener.fileno(),
            udp,
            closed,
            file,
            file.fileno(),
            -1,
            10**6,
            None,
            object(),
        ):
            assert tcp_age(odd) is None  # type: ignore[arg-type]
            assert accept_queue(odd) is None  # type: ignore[arg-type]
        assert not has_tcp_info(unix)
        assert not has_tcp_info(None)
        assert has_tcp_info(closed), "the kind of a socket outlives it"


def test_a_kernel_that_tells_less_is_not_believed():
    """Fewer bytes than the fields need are no answer."""

    class Short:
        def getsockopt(self, level, option, size, /):
            return b"\n" * 8

    assert tcp_age(Short()) is None
    assert accept_queue(Short()) is None


def test_no_answer_on_other_systems(listener, monkeypatch):
    """The layout of struct tcp_info is Linux's own."""
    monkeypatch.setattr(tcp, "_LINUX", False)
    assert tcp_age(listener) is None
    assert accept_queue(listener) is None
    assert not has_tcp_info(listener)
    assert listening_sockets() == []


def test_no_answer_for_descriptors_without_ctypes(listener, monkeypatch):
    """A Python without ctypes still asks socket objects."""
    monkeypatch.setitem(sys.modules, "ctypes", None)
    descriptor._library.cache_clear()
    try:
        assert accept_queue(listener.fileno()) is None
        assert accept_queue(listener) == 0
    finally:
        descriptor._library.cache_clear()


def test_own_listening_sockets_are_found(listener):
    """Found once, though it has two descriptors; connections and Unix sockets are not listening."""
    port = listener.getsockname()[1]
    twin = os.dup(listener.fileno())
    with _connect(listener) as client:
        found = listening_sockets(port)
        assert [entry.address for entry in found] == [listener.getsockname()]
        assert found[0].fd in (listener.fileno(), twin)
        assert accept_queue(found[0]) == 1
        assert port in {entry.address[1] for entry in listening_sockets()}
        assert listening_sockets(client.getsockname()[1]) == []
    os.close(twin)
    assert str(port) in repr(found[0])


def test_finding_sockets_leaves_no_descriptor(listener):
    """Looking around neither opens nor closes anything for good."""
    before = sorted(os.listdir("/proc/self/fd"))
    found = listening_sockets()
    assert sorted(os.listdir("/proc/self/fd")) == before
    for entry in found:
        entry.close()
    assert sorted(os.listdir("/proc/self/fd")) == before
    assert accept_queue(found[0]) is None
    assert listener.fileno() >= 0


def test_a_found_listener_does_not_keep_the_port_open(listener):
    """Once the server closes its socket, clients are refused and the depth is unknown."""
    found = listening_sockets(listener.getsockname()[1])
    address = listener.getsockname()[:2]
    listener.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, timeout=5)
    assert accept_queue(found[0]) is None


def test_a_reused_descriptor_is_not_mistaken(listener):
    """The number of a closed listener may come back as a file or a connection."""
    found = listening_sockets(listener.getsockname()[1])
    with open(os.devnull, "rb") as file:
        fd = listener.detach()
        os.dup2(file.fileno(), fd)
        assert accept_queue(found[0]) is None
        os.close(fd)


def test_a_listener_that_closes_while_we_look(listener, monkeypatch):
    """A descriptor that is gone between two looks is left out."""
    monkeypatch.setattr(os, "dup", lambda fd: (_ for _ in ()).throw(OSError("closed")))
    assert listening_sockets(listener.getsockname()[1]) == []


def test_without_proc_nothing_is_found(monkeypatch):
    """Containers may hide /proc."""

    def hidden(path):
        raise FileNotFoundError(path)

    monkeypatch.setattr(os, "listdir", hidden)
    assert listening_sockets() == []


def test_a_closed_listener_says_so():
    """Asking a forgotten listener directly is an OSError, as with a socket."""
    entry = Listener(0, ("127.0.0.1", 1))
    entry.close()
    with pytest.raises(OSError, match="descriptor -1"):
        entry.getsockopt(6, 11, 56)


def test_interrupting_a_look_never_closes_the_servers_socket():
    """SIGINT at any moment while a descriptor is asked leaves it open."""
    program = """
import os, signal, socket, time
from resilience_mw.signals.tcp import accept_queue, listening_sockets
server = socket.create_server(("127.0.0.1", 0))
class Interrupted(Exception): pass
def interrupt(*_): raise Interrupted
signal.signal(signal.SIGALRM, interrupt)
hits = 0
for n in range(300):
    until = time.monotonic() + 0.1
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0002 + n * 1e-6)
        while time.monotonic() < until:
            accept_queue(server.fileno()); listening_sockets()
    except Interrupted:
        hits += 1
os.fstat(server.fileno())
print(hits > 200, accept_queue(server))
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout.split() == ["True", "0"], done.stderr
