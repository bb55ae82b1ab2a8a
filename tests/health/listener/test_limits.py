"""What is left for a probe when others have taken all there is."""

from __future__ import annotations

import errno
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.process import ROOT, free_port
from resilience_mw.health.listener import answerer
from resilience_mw.health.listener.native import Poller

from .probing import until

EXHAUSTED = """
import os, resource, socket, sys, time
from resilience_mw.config import Health
from resilience_mw.core.health import HealthPolicy
from resilience_mw.health.listener import OutOfBand

port = int(sys.argv[1])
OutOfBand(HealthPolicy(), Health(port=port, host="127.0.0.1")).open()
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
idle = []
if "idle" in sys.argv:
    idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(5)]
    for one in idle:
        one.send(b"G")
    time.sleep(0.3)
clients = [socket.socket() for _ in range(5)]
try:
    while True:
        os.dup(0)
except OSError:
    pass
for client in clients:
    client.settimeout(10)
    client.connect(("127.0.0.1", port))
    client.sendall(b"GET /livez HTTP/1.1\\r\\n\\r\\n")
    print(client.recv(15).decode(), flush=True)
used = time.process_time()
time.sleep(1)
print(time.process_time() - used < 0.5, flush=True)
os._exit(0)
"""
"""Leaves a process no descriptor, then asks for its probes."""


@pytest.mark.parametrize("idle", [(), ("idle",)])
def test_a_process_without_descriptors(idle):
    """It lives, and says so; connections that only hang there make room first."""
    command = [sys.executable, "-c", EXHAUSTED, str(free_port()), *idle]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert run.stdout.split("\n")[:-1] == ["HTTP/1.1 200 OK"] * 5 + ["True"], run.stderr


def test_nothing_left_at_all(monkeypatch):
    """Not even when a descriptor is given away: the next turn tries again, without haste."""

    class Full(answerer.calls().__class__):  # type: ignore[misc]
        def __init__(self) -> None:
            pass

        def accept(self, listener: object) -> None:
            raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(answerer, "calls", Full)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = answerer.Answerer(listener, Poller(), lambda request, peer: None)
        begun = time.monotonic()
        serving.accept(begun)
        assert time.monotonic() - begun >= answerer.RESPITE
        serving.serve([], begun)
        serving.close()


def test_many_clients_that_say_nothing(opened):
    """They wait in the system's queue, which is long enough for a probe to get in behind them."""
    limit = Path("/proc/sys/net/core/somaxconn")
    if limit.exists() and int(limit.read_text()) < 1_000:
        pytest.skip("this system's queues are too short")
    port, _ = opened()
    silent = []
    try:
        for _ in range(400):
            one = socket.socket()
            silent.append(one)
            one.setblocking(False)
            one.connect_ex(port[::-1])
        begun = time.monotonic()
        assert port.status() == 200
        # A connection that finds the queue full is tried again after a second.
        assert time.monotonic() - begun < 0.9
    finally:
        for one in silent:
            one.close()
    until(lambda: port.status() == 200)


def test_tls_is_refused_at_once(opened):
    """A probe that is set to HTTPS by mistake learns so before its time is over."""
    port, _ = opened()
    with socket.create_connection(port[::-1], timeout=answerer.PATIENCE / 2) as client:
        client.sendall(b"\x16\x03\x01\x02\x00\x01\x00")
        assert client.recv(100).startswith(b"HTTP/1.1 400 ")
