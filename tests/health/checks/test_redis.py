"""A real Redis server is asked on a connection of the check's own."""

from __future__ import annotations

import shutil
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
import redis

from benchmarks.process import HOST, Server, free_port
from resilience_mw.health import RedisCheck
from tests.health.checks.asking import PASSED, ask

pytestmark = pytest.mark.skipif(
    shutil.which("redis-server") is None, reason="redis-server is not installed"
)


@pytest.fixture
def server() -> Iterator[Callable[..., Server]]:
    """Start a server with nothing on disk: `server("--requirepass", "secret")`."""
    with ExitStack() as servers:

        def start(*arguments: str) -> Server:
            port = free_port()
            flags = ["--port", str(port), "--bind", HOST, "--save", "", *arguments]
            started = servers.enter_context(Server(["redis-server", *flags], port))
            started.wait_until_serving()
            return started

        yield start


def url(server: Server, login: str = "") -> str:
    return f"redis://{login}{HOST}:{server.port}/0"


def test_passes_and_leaves_nothing_open(server):
    """As often as it is asked."""
    running = server()
    check = RedisCheck(url(running), timeout=10)
    assert [ask(check) for _ in range(5)] == [PASSED] * 5
    with redis.Redis(port=running.port) as client:
        until = time.monotonic() + 10
        while len(client.client_list()) > 1 and time.monotonic() < until:
            time.sleep(0.01)
        assert len(client.client_list()) == 1


def test_a_pool_that_is_busy_is_not_asked(server):
    """The app's only connection is taken; the server is well."""
    running = server()
    pool = redis.BlockingConnectionPool.from_url(url(running), max_connections=1, timeout=0.01)
    taken = pool.get_connection()
    try:
        with pytest.raises(redis.ConnectionError):
            redis.Redis(connection_pool=pool).ping()
        assert ask(RedisCheck(url(running), timeout=10)) == PASSED
    finally:
        pool.release(taken)
        pool.disconnect()


def test_passwords(server):
    """A wrong one, and none, have a reason of their own."""
    running = server("--requirepass", "secret")
    assert ask(RedisCheck(url(running, ":secret@"), timeout=10)) == PASSED
    assert ask(RedisCheck(url(running, ":wrong@"), timeout=10)) == "authentication"
    assert ask(RedisCheck(url(running), timeout=10)) == "authentication"


def test_a_user_who_may_not_ping_passes(server):
    """The server has answered."""
    running = server()
    with redis.Redis(port=running.port) as client:
        client.acl_setuser("reader", enabled=True, passwords="+secret", commands=["+get"])
    assert ask(RedisCheck(url(running, "reader:secret@"), timeout=10)) == PASSED


def test_down_and_up_again(server):
    """On the same port."""
    running = server()
    check = RedisCheck(url(running), timeout=10)
    running.stop()
    assert ask(check) == "refused"
    with Server(["redis-server", "--port", str(running.port), "--save", ""], running.port) as again:
        again.wait_until_serving()
        assert ask(check) == PASSED


def test_a_stopped_process_is_a_timeout(server):
    """It accepts, and answers nothing; the thread that asks comes back too."""
    running = server()
    running.signal(signal.SIGSTOP)
    started = time.monotonic()
    assert ask(RedisCheck(url(running), timeout=0.2)) == "timeout"
    assert time.monotonic() - started < 5.0


def test_no_such_name_and_no_socket(tmp_path):
    """As for the other checks."""
    assert ask(RedisCheck("redis://nobody.invalid:6379/0", timeout=30)) == "dns"
    assert ask(RedisCheck(f"unix://{tmp_path}/redis.sock", timeout=10)) == "no socket"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"-LOADING Redis is loading the dataset in memory\r\n", "loading"),
        (b"-ERR max number of clients reached\r\n", "closed"),
        (b"-MISCONF disk\r\n", "error"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "error"),
    ],
)
def test_other_answers(answer, reason):
    """Of a server in trouble, or of something else on that port."""
    with socket.create_server((HOST, 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                while connection.recv(4096):
                    connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        port = listener.getsockname()[1]
        assert ask(RedisCheck(f"redis://{HOST}:{port}/0?protocol=2", timeout=10)) == reason
        thread.join(10)


def test_the_package_is_an_extra(monkeypatch):
    """Without it, one line says what to install."""
    from resilience_mw.exceptions import ConfigError

    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"RedisCheck needs redis: pip install 'resilience-mw\[r"):
        RedisCheck("redis://localhost")
