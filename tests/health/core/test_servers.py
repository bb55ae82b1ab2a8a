"""Checks on the real servers: where they run, and what the probes say."""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from tests.health.core.waiting import until
from tests.servers import ASGI_SERVERS, WSGI_SERVERS, Server, gunicorn

ALL = {name: (launch, "asgi") for name, launch in ASGI_SERVERS.items()}
SWITCHED_OFF = [
    "[+]lifecycle ok: ready",
    "[-]switch failed: switched off",
    "[+]where ok",
    "[-]hangs failed: timeout (not critical)",
    "readyz check failed",
]
PLAIN = "tests.health.core.plain:app"
ALL |= {name: (launch, "wsgi") for name, launch in WSGI_SERVERS.items()}


def get(server: Server, path: str) -> tuple[int, str]:
    """Ask on a connection of its own."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=10)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    except ConnectionError:
        return 0, "closed"  # some servers do so while they start
    finally:
        connection.close()


@pytest.mark.parametrize("name", ALL)
def test_probes_follow_the_checks(name: str, serve: Callable[[Server], Server], tmp_path: Path):
    """On every server, with a limit of one that is taken, and with a check that hangs for ever."""
    launch, app = ALL[name]
    switch = tmp_path / "switch"
    env = {**os.environ, "TEST_SWITCH": str(switch)}
    server = serve(launch(f"tests.health.core.apps:{app}", env=env))
    until(lambda: get(server, "/readyz") == (200, "ok"))
    expected = "MainThread" if app == "asgi" else "resilience-mw-check-where"
    if name == "gunicorn-gevent":
        expected = "resilience-mw-health"
    assert get(server, "/")[1].partition(" ")[2] == expected
    # Not at the first try, perhaps: what asks whether it is there may be in its way.
    taking = threading.Thread(target=until, args=(lambda: get(server, "/wait")[0] == 200,))
    if not name.endswith("-sync"):
        taking.start()
        until(lambda: get(server, "/")[0] == 503)
    switch.touch()
    until(lambda: get(server, "/readyz") == (503, "not ready"))
    assert get(server, "/livez") == (200, "ok")
    assert get(server, "/startupz") == (200, "ok")
    until(lambda: get(server, "/readyz?verbose")[1].splitlines() == SWITCHED_OFF)
    switch.unlink()
    until(lambda: get(server, "/readyz") == (200, "ok"))
    if taking.ident is not None:
        taking.join()


def test_every_worker_of_a_preloaded_app_asks(serve: Callable[[Server], Server]):
    """For itself: what was known in the process that forked it counts for nothing."""
    server = serve(gunicorn("tests.health.core.apps:wsgi", workers=2, args=["--preload"]))
    until(lambda: get(server, "/readyz") == (200, "ok"))
    seen: set[str] = set()

    def both_seen() -> bool:
        seen.add(get(server, "/")[1].partition(" ")[0])
        return len(seen - {""}) == 2

    until(both_seen)
    workers = {str(child.pid) for child in psutil.Process(server.pid).children()}
    assert seen <= workers | {""}  # never the process that forked them


WRONG = {
    "db=http://": "must be checks with a good URL after http:, got {'db': 'http://'}",
    "db=https://[::1/": "must be checks with a good URL after https:, got {'db': 'https://[::1/'}",
    "db=tcp://host:70000": "must be checks with a good URL after tcp:, got {'db': 'tcp://host:70000'}",
    "db=ftp://host/": "must be checks that begin with http:, ",
    "db=tcp://h:1,DB=tcp://h:2": "must have distinct names, whatever their case, got 'DB'",
    "db=unix:relative": "db: UpstreamCheck url must be unix:/path/of/socket:/page",
    "db=no_such_module:ping": "db: a check must be importable, and there is no 'no_such_module'",
}


@pytest.mark.parametrize(
    ("server", "text"),
    # One of them is enough where the server is not ours.
    [(name, next(iter(WRONG))) for name in ("uvicorn", "gunicorn")]
    + [("resilience-mw", text) for text in WRONG],
)
def test_a_wrong_check_is_one_clear_error_at_start(server: str, text: str):
    """And the server exits with a code that is not 0."""
    bound = {"uvicorn": ["--port", "0"], "gunicorn": ["-b", "127.0.0.1:0"]}
    command = [server, *bound[server]] if server in bound else [server, "run", "--port", "0"]
    ended = subprocess.run(
        [sys.executable, "-m", *(part.replace("-mw", "_mw") for part in command), PLAIN],
        env={**os.environ, "RESILIENCE_HEALTH_CHECKS": text},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert ended.returncode not in (0, None)
    said = [line for line in ended.stderr.splitlines() if WRONG[text] in line]
    assert said
    assert "health.checks" in said[-1]
    if server == "resilience-mw":
        assert ended.stderr.splitlines() == said
