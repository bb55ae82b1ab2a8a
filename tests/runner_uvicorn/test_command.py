"""`resilience-mw run`: which server, what it says without one, and what it hands over."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from functools import partial

import pytest

from benchmarks.servers import start
from resilience_mw.cli.program import run

from .client import APPS, get, times

RUN = [sys.executable, "-m", "resilience_mw", "run"]


def with_port(line, port):
    return [*line, "--port", str(port)]


def without(*packages: str, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Run the command where these packages are not installed."""
    code = (
        "import sys, importlib.abc\n"
        "class Nothing(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        f"        if name.partition('.')[0] in {packages!r}:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Nothing())\n"
        "from importlib import util\n"
        "find = util.find_spec\n"
        f"util.find_spec = lambda name: None if name in {packages!r} else find(name)\n"
        "from resilience_mw.cli import main\n"
        f"sys.exit(main({arguments!r}))\n"
    )
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize(("app", "found"), [("app", "uvicorn"), ("wsgi", "gunicorn")])
def test_the_server_follows_the_app(serve, app, found, workers):
    """ASGI gets Uvicorn, WSGI Gunicorn; both keep the times and end with 0."""
    line = [*RUN, f"{APPS}:{app}", "--workers", workers, *times(delay=2.0, shutdown=2.0)]
    server = serve(start(partial(with_port, line)))
    assert get(server, "/slow/0").body in (b"done", b"wsgi")
    until = time.monotonic() + 10.0
    while get(server, "/readyz").status != 200:
        assert time.monotonic() < until
    assert found in server.output().lower()
    server.signal(signal.SIGTERM)
    until = time.monotonic() + 1.5
    while get(server, "/readyz").status != 503:
        assert time.monotonic() < until
    assert server.wait(15) == 0


def test_gunicorn_for_an_asgi_app(serve):
    """Whoever asks for Gunicorn gets its ASGI worker."""
    line = [*RUN, f"{APPS}:app", "--server", "gunicorn", *times()]
    server = serve(start(partial(with_port, line)))
    assert get(server, "/slow/0").body == b"done"
    assert get(server, "/livez").body == b"ok"


def test_options_reach_the_app_from_flags_and_environment(serve):
    """A flag wins over a variable, and each process hears of both."""
    line = [*RUN, f"{APPS}:app", "--workers", "2", "--health-live-path", "/alive", *times()]
    env = {"RESILIENCE_HEALTH_LIVE_PATH": "/lives", "RESILIENCE_HEALTH_READY_PATH": "/ready"}
    server = serve(start(partial(with_port, line), env=env))
    assert get(server, "/alive").body == b"ok"
    assert get(server, "/ready").body == b"ok"
    assert get(server, "/lives").body == b"done"


@pytest.mark.parametrize("server", ["uvicorn", "gunicorn"])
def test_a_server_that_is_not_installed(server):
    """One line says what to install."""
    done = without(server, arguments=["run", "x:app", "--server", server])
    assert done.returncode == 1
    assert done.stderr == (
        f"resilience-mw: {server} is not installed: pip install 'resilience-mw[{server}]'\n"
    )


def test_a_server_that_an_app_needs_and_is_not_installed():
    """The same where the app decides."""
    done = without("gunicorn", arguments=["run", f"{APPS}:wsgi"])
    assert done.returncode == 1
    assert "pip install 'resilience-mw[gunicorn]'" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["app"], 'APP must be "module:attribute", got app'),
        (["a:b", "--port", "70000"], "70000"),
        (["a:b", "--runner-drain-delay", "-1"], "runner.drain_delay must be >= 0, got -1"),
        (["a:b", "--drain-delay", "1"], "did you mean --runner-drain-delay?"),
    ],
)
def test_wrong_usage(arguments, message, capsys):
    """One line, and 2."""
    assert run(["run", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_app_that_cannot_be_imported(workers):
    """The reason is shown, and the code is 3, whichever process found out."""
    arguments = [*RUN, "tests.nothing_here:app", "--workers", workers]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 3
    assert "No module named 'tests.nothing_here'" in done.stderr


def test_apps_are_found_in_the_working_directory(serve, tmp_path):
    """As with the servers' own commands."""
    (tmp_path / "here.py").write_text(f"from {APPS} import app\n")
    line = [*RUN, "here:app", *times()]
    server = serve(start(partial(with_port, line), cwd=tmp_path))
    assert get(server, "/slow/0").body == b"done"
