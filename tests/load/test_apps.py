from __future__ import annotations

import time

import httpx
import pytest

from benchmarks.apps import work
from benchmarks.servers import gunicorn, uvicorn

# A hundredth of the real work: what counts here is that each path answers.
LITTLE = {work.VARIABLE: str(max(1, work.STEPS_PER_MS // 100))}


@pytest.fixture(scope="module", params=["none", "limit:50"])
def protect(request):
    return request.param


@pytest.mark.parametrize(
    ("launch", "app", "paths"),
    [
        (
            uvicorn,
            "benchmarks.apps.asgi:app",
            ["hello", "compute", "awaits", "io", "light", "pool", "thread"],
        ),
        (gunicorn, "benchmarks.apps.wsgi:app", ["hello", "compute", "io"]),
    ],
    ids=["asgi", "wsgi"],
)
def test_every_path_answers(launch, app, paths, protect, serve):
    """Each kind of work is there, with and without protection around it."""
    server = serve(launch(app, env={"PROTECT": protect, **LITTLE}))
    with httpx.Client(base_url=server.url) as client:
        assert {client.get(f"/{path}").status_code for path in paths} == {200}
        health = 404 if protect == "none" else 200
        assert client.get("/livez").status_code == health


def test_work_does_not_depend_on_the_time_it_takes():
    """Twice the steps take about twice the CPU: the size of the work is what is fixed."""
    ratios = []
    for _ in range(9):
        begin = time.thread_time()
        work.spend(50_000)
        middle = time.thread_time()
        work.spend(100_000)
        ratios.append((time.thread_time() - middle) / (middle - begin))
    assert 1.5 < sorted(ratios)[4] < 2.7


def test_calibration_comes_from_outside(monkeypatch):
    """Servers that are compared are handed one calibration."""
    monkeypatch.setenv(work.VARIABLE, "4321")
    assert work.steps_per_ms() == 4321
    monkeypatch.delenv(work.VARIABLE)
    assert work.steps_per_ms() > 100


def test_an_unknown_protection_is_an_error(monkeypatch):
    """A slip in the environment must not measure the wrong thing."""
    from benchmarks.apps.protection import protected

    app = object()
    monkeypatch.delenv("PROTECT", raising=False)
    assert protected(app) is app
    monkeypatch.setenv("PROTECT", "none")
    assert protected(app) is app
    monkeypatch.setenv("PROTECT", "limit:x")
    with pytest.raises(ValueError, match=r"^PROTECT must be .*, got 'limit:x'$"):
        protected(app)
