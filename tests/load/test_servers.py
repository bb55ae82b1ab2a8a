from __future__ import annotations

import os
import signal
import sys
import time

import httpx
import psutil
import pytest

from benchmarks.process import PORTS, Server, ServerError, free_port
from tests.servers import ASGI_SERVERS, WSGI_SERVERS, gunicorn, start, uvicorn

STUBBORN = """
import signal, socket, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("will not go")
while True:
    listener.accept()[0].close()
"""


def python(code):
    return lambda port: [sys.executable, "-c", code, str(port)]


def gone(pid):
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.parametrize("launch", ASGI_SERVERS.values(), ids=ASGI_SERVERS)
def test_asgi_servers_serve_and_end(launch):
    """Each server answers once its launcher has returned, and leaves no process behind."""
    with launch("tests.load.hello:app") as server:
        assert httpx.get(f"{server.url}/").status_code == 200
        pids = [server.pid, *(worker.pid for worker in server.workers())]
        assert server.running
    assert server.exit_code in (0, -signal.SIGTERM)
    assert not server.running
    assert all(gone(pid) for pid in pids)


@pytest.mark.parametrize("launch", WSGI_SERVERS.values(), ids=WSGI_SERVERS)
def test_wsgi_servers_serve_and_end(launch):
    """The same for the servers of the older protocol."""
    with launch("tests.load.hello:wsgi") as server:
        assert httpx.get(f"{server.url}/").text == "ok"
    assert server.exit_code in (0, -signal.SIGTERM)


def test_environment_and_arguments_reach_the_server(serve):
    """Variables and arguments are handed on."""
    server = serve(
        gunicorn("tests.load.hello:wsgi", args=["--name", "named"], env={"HELLO": "from outside"})
    )
    assert "--name" in server.command
    assert httpx.get(server.url).text == "from outside"


def test_an_import_error_is_shown():
    """A server that cannot load its app fails at once, with its own last words."""
    began = time.monotonic()
    with pytest.raises(ServerError, match=r"tests\.load\.nowhere") as caught:
        gunicorn("tests.load.nowhere:app")
    assert "ended with" in str(caught.value)
    assert time.monotonic() - began < 15


def test_a_server_that_never_answers_is_killed():
    """The wait is bounded, and what was started does not outlive it."""
    with pytest.raises(ServerError, match=r"did not answer within 0\.5 s\nasleep"):
        start(python("print('asleep', flush=True); import time; time.sleep(60)"), timeout=0.5)


def test_a_server_that_ignores_the_signal_is_killed():
    """`stop` gives a bound, then ends it and tells."""
    server = start(python(STUBBORN))
    with pytest.raises(ServerError, match=r"still there after 0\.3 s, killed\nwill not go"):
        server.stop(timeout=0.3)
    assert server.exit_code == -signal.SIGKILL
    assert server.stop() == -signal.SIGKILL
    assert gone(server.pid)


def test_a_stopped_server_can_be_ended(serve):
    """A test may freeze a server and forget about it."""
    server = serve(uvicorn("tests.load.hello:app"))
    server.signal(signal.SIGSTOP)
    assert server.stop() == -signal.SIGTERM


def test_output_is_kept_after_the_end():
    """What a server printed can be read while it runs and afterwards."""
    with uvicorn("tests.load.hello:app") as server:
        assert "Uvicorn running" in server.output()
    assert "Finished server process" in server.output()


def test_a_taken_port_is_not_the_end(monkeypatch):
    """When somebody takes the port first, another one is tried."""
    with uvicorn("tests.load.hello:app") as first:
        ports = iter([first.port, free_port()])
        monkeypatch.setattr("benchmarks.servers.free_port", lambda: next(ports))
        with uvicorn("tests.load.hello:app") as second:
            assert second.port != first.port


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system cannot pin")
def test_a_server_can_be_pinned(serve):
    """All of a server runs on the CPU that the benchmark gives it."""
    cpu = min(os.sched_getaffinity(0))
    server = serve(gunicorn("tests.load.hello:wsgi", cpu=cpu))
    for process in (psutil.Process(server.pid), *server.workers()):
        assert process.cpu_affinity() == [cpu]
    assert server.cpu_seconds() > 0


def test_ports_lie_below_those_that_clients_get():
    """A free port is no source port that a client's connection might take meanwhile."""
    ports = {free_port() for _ in range(20)}
    assert ports <= set(PORTS)
    assert len(ports) > 1


def test_a_server_describes_itself():
    """Its representation says where it is and whether it runs."""
    server = Server(python("")(0), 1)
    assert "running" in repr(server)
    server.wait()
    assert "ended with 0" in repr(server)
    assert server.workers() == []
