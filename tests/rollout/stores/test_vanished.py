"""A store whose file is gone while servers run: the way back is still there."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.process import Server
from benchmarks.servers import gunicorn, uvicorn
from resilience_mw.cli.program import run
from resilience_mw.core.rollout import Share
from resilience_mw.rollout.stores import open_store
from tests.rollout.stores.following import until
from tests.rollout.stores.test_workers import ask

APPS = "tests.rollout.stores.apps"


def stacks(server: Server) -> set[str]:
    return {name for name, _ in ask(server)}


@pytest.mark.parametrize("kind", ["asgi", "wsgi"])
def test_a_roll_back_onto_a_file_that_is_gone(
    kind: str,
    serve: Callable[[Server], Server],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
):
    """The server keeps its last share until `--new` writes the file; then it goes back."""
    path = tmp_path / "rollout.toml"
    url = f"file:{path}"
    start = uvicorn if kind == "asgi" else gunicorn
    server = serve(start(f"{APPS}:{kind}_app", env={"STORE": url}))
    assert stacks(server) == {"old"}
    until(lambda: "favourites" in open_store(url).load())
    assert run(["rollout", "set", "favourites", "100", "--yes", "--store", url]) == 0
    until(lambda: stacks(server) == {"new"})

    path.unlink()
    time.sleep(0.6)  # two looks of the server
    assert run(["rollout", "rollback", "--store", url]) == 1
    assert run(["rollout", "rollback", "favourites", "--store", url]) == 1
    assert capsys.readouterr().err.count("(no such file)") == 2
    assert stacks(server) == {"new"}
    assert not path.exists()

    assert run(["rollout", "rollback", "favourites", "--new", "--store", url]) == 0
    until(lambda: stacks(server) == {"old"})
    assert open_store(url).load() == {"favourites": Share(0)}
