"""Every example, started as its docstring says, on its real server."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from tests.servers import Launcher, gunicorn, uvicorn

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

SERVED: dict[str, tuple[Launcher, str, str]] = {
    "asgi_plain.py": (uvicorn, "asgi_plain:app", "."),
    "by_hand.py": (uvicorn, "by_hand:app", "."),
    "django_gunicorn": (gunicorn, "project.wsgi", "django_gunicorn"),
    "django_uvicorn": (uvicorn, "project.asgi:application", "django_uvicorn"),
    "fastapi_app.py": (uvicorn, "fastapi_app:app", "."),
    "flask_app.py": (gunicorn, "flask_app:app", "."),
    "per_route.py": (uvicorn, "per_route:app", "."),
    "wsgi_plain.py": (gunicorn, "wsgi_plain:app", "."),
}


@pytest.fixture
def start(serve):
    """Start an example by name, and return a client of it."""
    clients = []

    def start(name):
        launch, app, folder = SERVED[name]
        server = serve(launch(app, cwd=EXAMPLES / folder))
        clients.append(httpx2.Client(base_url=server.url, timeout=30))
        return clients[-1]

    yield start
    for client in clients:
        client.close()


def at_once(client, paths):
    """Ask for all paths at the same time; return how often each status came."""
    with ThreadPoolExecutor(len(paths)) as threads:
        return Counter(threads.map(lambda path: client.get(path).status_code, paths))


def test_no_example_is_left_out():
    """Whatever lies in the folder is run here, or has tests of its own."""
    apart = ("__pycache__", "demo", "deploy", "rollout", "servers")
    names = {path.name for path in EXAMPLES.iterdir() if path.name not in apart}
    assert names == set(SERVED)


@pytest.mark.parametrize("name", SERVED)
def test_the_docstring_says_how_to_start_it(name):
    """The command there names the same app as this test, and curl the probes' port."""
    path = EXAMPLES / name
    source = path if path.suffix else path / "project" / "settings.py"
    _, app, _ = SERVED[name]
    text = source.read_text()
    assert app in text
    assert "curl -i http://127.0.0.1:8000/" in text


@pytest.mark.parametrize("name", sorted(SERVED.keys() - {"by_hand.py", "per_route.py"}))
def test_it_serves_and_answers_probes(start, name):
    """One page and the three probes."""
    client = start(name)
    assert client.get("/").text.strip() == "hello"
    for probe in ("/livez", "/readyz", "/startupz"):
        response = client.get(probe)
        assert (response.status_code, response.text) == (200, "ok")


@pytest.mark.parametrize("name", ["django_gunicorn", "flask_app.py", "wsgi_plain.py"])
def test_more_than_the_threads_can_bear_is_refused(start, name):
    """Eight threads, a limit of four: the others refuse, and nothing stays in flight."""
    client = start(name)
    statuses = at_once(client, ["/"] * 40)
    assert set(statuses) == {200, 503}
    assert at_once(client, ["/"]) == {200: 1}


@pytest.mark.parametrize(
    "name", ["django_gunicorn", "django_uvicorn", "fastapi_app.py", "flask_app.py"]
)
def test_a_view_knows_how_much_time_it_has(start, name):
    """The deadline of the example's options, counted down."""
    left = start(name).get("/report").json()["seconds_left"]
    assert 0 < left <= 10


@pytest.mark.parametrize("name", ["fastapi_app.py", "flask_app.py"])
def test_the_load_is_shown(start, name):
    """As JSON, the request that asks included."""
    client = start(name)
    client.get("/")
    state = client.get("/load").json()
    assert state["inflight"] == 1
    assert state["admitted"] == 2
    assert state["policies"]


def test_django_serves_both_kinds_of_view_under_asgi(start):
    """Coroutines and threads, many at once."""
    client = start("django_uvicorn")
    statuses = at_once(client, ["/", "/thread"] * 10)
    assert statuses[200] == 20


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("django_gunicorn", "--threads 8 --timeout 30"), ("django_uvicorn", "")],
)
def test_django_finds_nothing_to_complain_of_in_us(name, arguments):
    """`manage.py check --deploy`, with Gunicorn's arguments known where there are some."""
    done = subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--tag", "resilience_mw"],
        cwd=EXAMPLES / name,
        env={"GUNICORN_CMD_ARGS": arguments, "PYTHONPATH": str(EXAMPLES.parent)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "no issues" in done.stdout


def test_three_by_hand(start):
    """Probe paths of one's own, a deadline that answers in time, and a limit."""
    client = start("by_hand.py")
    assert client.get("/").text == "hello"
    assert client.get("/healthz").text == "ok"
    begun = time.monotonic()
    late = client.get("/slow")
    assert (late.status_code, late.text) == (504, "Gateway Timeout")
    assert 2 <= time.monotonic() - begun < 20
    assert at_once(client, ["/"] * 10) == {200: 10}


def test_limits_of_single_routes(start):
    """Two reports run, two wait, the rest is refused; other routes do not notice."""
    client = start("per_route.py")
    with ThreadPoolExecutor(10) as threads:
        reports = [threads.submit(client.get, f"/reports/{2000 + n}") for n in range(8)]
        time.sleep(0.3)
        assert at_once(client, ["/", "/search/socks", "/livez"]) == {200: 3}
        statuses = Counter(report.result().status_code for report in reports)
    assert statuses == {200: 4, 503: 4}
    refused = next(r.result() for r in reports if r.result().status_code == 503)
    assert refused.text == "Service Busy"
    assert json.loads(refused.headers["Retry-After"]) >= 1
