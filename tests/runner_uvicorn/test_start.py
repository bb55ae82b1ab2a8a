"""Starting: what a server serves, what it says, and how it fails."""

from __future__ import annotations

import signal
import socket
import time

import pytest

from benchmarks.process import Server

from .client import COMBINATIONS, begin, get, launch, times, wait_refused


def wait_for(server: Server, text: str) -> None:
    """Wait until the server's output has it."""
    until = time.monotonic() + 15.0
    while text not in server.output():
        assert server.running, server.output()
        assert time.monotonic() < until, server.output()
        time.sleep(0.02)


def test_the_app_is_protected_without_a_change(serve):
    """There are probes, and one line that says with which times it serves."""
    server = serve(launch(*times(delay=0.5), "--limit-max-concurrent-requests=0"))
    assert [get(server, path).body for path in ("/livez", "/readyz", "/startupz")] == [b"ok"] * 3
    (line,) = [line for line in server.output().splitlines() if "serving on" in line]
    assert f"http://127.0.0.1:{server.port}" in line
    assert "protected by the runner" in line
    assert "keep-alive 5 s, headers 5 s, drain delay 0.5 s, shutdown 3 s" in line


@pytest.mark.parametrize(
    ("app", "flags", "status"),
    [
        ("queued", [], 200),
        ("app", ["--no-runner-protect"], 404),
        ("factory", [], 200),
        ("factory", ["--factory"], 200),
        ("bare", [], 200),
    ],
    ids=["wrapped-already", "switched-off", "factory", "factory-flag", "no-lifespan"],
)
def test_what_is_served(serve, app, flags, status):
    """An app is wrapped unless somebody did so, or nobody wants it; its own paths always work."""
    server = serve(launch(*times(), *flags, app=app))
    assert get(server, "/slow/0").body == b"done"
    probe = get(server, "/readyz")
    assert (probe.body == b"ok") == (status == 200)


@pytest.mark.parametrize("on", COMBINATIONS.values(), ids=list(COMBINATIONS))
def test_told_to_stop_while_starting(serve, on):
    """The start is cancelled, nothing has been served, and the code is 0."""
    server = serve(begin(*times(delay=5.0), env={"APP_STARTUP": "60"}, **on))
    wait_for(server, "Waiting for application startup")
    began = time.monotonic()
    server.signal(signal.SIGTERM)
    assert server.wait(10) == 0
    assert time.monotonic() - began < 5.0
    output = server.output()
    assert "app: startup cancelled" in output
    assert "Traceback" not in output


@pytest.mark.parametrize("flags", [[], ["--server=auto"], ["--server=auto", "--workers=2"]])
def test_told_to_stop_while_the_app_is_imported(serve, flags):
    """However long that takes, and whoever does it."""
    server = serve(begin(*times(delay=5.0), *flags, env={"APP_IMPORT": "60"}))
    wait_for(server, "app: importing")
    server.signal(signal.SIGTERM)
    assert server.wait(10) == 0
    assert "Traceback" not in server.output()


def test_nobody_is_let_in_before_the_app_has_started(serve):
    """Clients are refused, rather than left to wait in a queue."""
    server = serve(begin(*times(), env={"APP_STARTUP": "60"}))
    wait_for(server, "Waiting for application startup")
    assert wait_refused(server, within=1.0) < 1.0


def test_an_app_that_does_not_start(serve):
    """The exit code is 3, as Uvicorn's."""
    server = serve(begin(*times(), env={"APP_FAILS": "1"}))
    assert server.wait(20) == 3
    assert "no database" in server.output()


@pytest.mark.parametrize("app", ["nothing", "broken:app", "wsgi"])
def test_an_app_that_cannot_be_loaded(serve, app):
    """The exit code says so, and the output why."""
    server = serve(begin(*times(), app=app))
    code = server.wait(20)
    output = server.output()
    if app == "wsgi":
        assert code == 2
        assert "use Gunicorn for WSGI" in output
    else:
        assert code == 3
        assert "nothing" in output or "broken" in output


def test_a_port_that_is_taken(serve):
    """The exit code is 3, and the app is not even imported."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        server = begin(*times())
        server.kill()
        line = [*server.command[:-1], str(taken.getsockname()[1])]
        failing = serve(Server(line, server.port))
        assert failing.wait(20) == 3
    assert "in use" in failing.output()
    assert "Traceback" not in failing.output()
