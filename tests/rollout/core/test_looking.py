"""Who only looks at an app writes nothing into its store."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from benchmarks.process import ROOT
from resilience_mw import RolloutRule
from resilience_mw.core.rollout import Share
from resilience_mw.rollout.stores import open_store
from tests.asgi.harness import run
from tests.rollout.stores.following import until

from .drivers import ASGI, DRIVERS

MODULE = """
from resilience_mw import RolloutRule
from resilience_mw.{kind} import RolloutMiddleware

{stack}

app = RolloutMiddleware(
    stack, new=stack, rules=[RolloutRule("cart", path="/cart", percent=2)],
    store="file:{store}",
)
"""
STACKS = {
    "asgi": "async def stack(scope, receive, send): ...",
    "wsgi": "def stack(environ, start_response): ...",
}
STACKS_AT = ["--old", "127.0.0.1:7001", "--new", "127.0.0.1:6001"]


@pytest.mark.parametrize("kind", ["asgi", "wsgi"])
@pytest.mark.parametrize(
    "command",
    [
        ["-c", "import roll, time; time.sleep(0.6)"],
        ["-m", "resilience_mw", "check", "roll:app"],
        ["-m", "resilience_mw", "export", "nginx", "roll:app", *STACKS_AT],
        ["-m", "resilience_mw", "export", "haproxy", "roll:app", *STACKS_AT],
    ],
    ids=["import", "check", "nginx", "haproxy"],
)
def test_commands_that_look_write_nothing(kind: str, command: list[str], tmp_path: Path):
    """Nor does an import: a job that builds the app could publish its shares to everybody."""
    kept = tmp_path / "kept"
    kept.mkdir()
    module = tmp_path / "roll.py"
    module.write_text(MODULE.format(kind=kind, stack=STACKS[kind], store=kept / "rollout.toml"))
    ran = subprocess.run(
        [sys.executable, *command],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{tmp_path}:{ROOT}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert list(kept.iterdir()) == []
    if "export" in command:
        assert "cart: 2 % by server." in ran.stdout


def following(driver: Any, store: str | None) -> Any:
    rules = [RolloutRule(name, path=f"/{name}", percent=2) for name in ("cart", "search")]
    return driver.Middleware(driver.app("old"), new=driver.app("new"), rules=rules, store=store)


@pytest.mark.parametrize("path", ["/", "/cart"])
@pytest.mark.parametrize("driver", DRIVERS)
def test_the_first_request_tells_the_store_the_rules(driver: Any, path: str, tmp_path: Path):
    """Whatever it is for; until then the middleware only looks."""
    store = open_store(f"file:{tmp_path}/rollout.toml")
    app = following(driver, store.name)
    time.sleep(0.6)
    assert list(tmp_path.iterdir()) == []
    assert driver.get(app, path).status == 200
    until(lambda: store.load() == {"cart": Share(2), "search": Share(2)})
    app.close()


def test_a_lifespan_tells_the_store_the_rules(tmp_path: Path):
    """Before the first request."""
    store = open_store(f"file:{tmp_path}/rollout.toml")
    app = following(ASGI, store.name)

    async def serve() -> None:
        messages = [{"type": "lifespan.startup"}]

        async def receive() -> dict[str, str]:
            if messages:
                return messages.pop()
            with anyio.fail_after(20):
                while len(store.load()) < 2:  # noqa: ASYNC110 - another process's, as it were
                    await anyio.sleep(0.01)
            return {"type": "lifespan.shutdown"}

        async def send(message: dict[str, str]) -> None:
            assert message["type"].endswith(".complete")

        await app({"type": "lifespan", "asgi": {"version": "3.0"}}, receive, send)

    run(serve())
    assert len(store.history()) == 2


@pytest.mark.parametrize("driver", DRIVERS)
def test_one_line_says_which_shares_are_in_force(
    driver: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    """From where, where the store overrides the code, and which rules are of no use here."""
    store = open_store(f"file:{tmp_path}/rollout.toml")
    store.change("cart", 50, who="anna")
    store.change("crat", 5, who="anna")
    with caplog.at_level(logging.INFO, "resilience_mw.rollout"):
        app = following(driver, store.name)
        time.sleep(0.3)
        assert caplog.messages == []
        driver.get(app)
        until(lambda: caplog.messages)
        assert caplog.messages == [
            f"rollout shares in {store.name}: cart 50 % (2 % in the code); search 2 %; "
            "no rule of this app is called 'crat'"
        ]
    app.close()


@pytest.mark.parametrize("driver", DRIVERS)
def test_without_a_store_the_shares_are_those_in_the_code(
    driver: Any, caplog: pytest.LogCaptureFixture
):
    """One line, too, at the first request."""
    with caplog.at_level(logging.INFO, "resilience_mw.rollout"):
        app = following(driver, None)
        driver.get(app)
        driver.get(app)
    assert caplog.messages == ["rollout shares in the code: cart 2 %; search 2 %"]
