"""A middleware and the store it follows."""

from __future__ import annotations

import gc
import logging
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from resilience_mw import RolloutRule
from resilience_mw.core import Share
from resilience_mw.rollout.stores import Change, Store, StoreError, open_store
from tests.asgi.harness import run

from .drivers import ASGI, DRIVERS, WSGI, rule_of
from .test_lifespan import lifespan

PATIENCE = 10.0


def until(condition: Callable[[], object]) -> None:
    """Wait until ``condition`` holds."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def answers(driver: Any, app: Any, text: str) -> bool:
    """Whether the stack of that name answers."""
    return bool(driver.get(app, "/a").text == text)


def following(driver: Any, store: Any, percent: float = 100) -> Any:
    """Two stacks and a rule whose share is the store's."""
    rules = [RolloutRule("r", path="/a", percent=percent)]
    return driver.Middleware(driver.app("old"), new=driver.app("new"), rules=rules, store=store)


class Hanging(Store):
    """A store that does not answer until it is told to, and may be away."""

    name = "hanging"
    interval = 0.01

    def __init__(self) -> None:
        self.go = threading.Event()
        self.shares: Mapping[str, Share] = {"r": Share(100)}

    def load(self) -> Mapping[str, Share]:
        if not self.go.wait(PATIENCE):
            raise StoreError("away")
        return self.shares

    def history(self, limit: int = 20) -> Sequence[Change]:
        return ()

    def transact(self, rule: str, decide: Any, who: str, why: str) -> Change | None:
        raise StoreError("away")


@pytest.mark.parametrize("driver", DRIVERS)
def test_the_store_decides_from_the_first_request_on(driver: Any, tmp_path: Path):
    """Whatever the code says, and without a wait at a request."""
    url = f"file:{tmp_path}/rollout.toml"
    open_store(url).change("r", 0, held=True, who="guard", why="errors")
    app = following(driver, url)
    assert driver.get(app, "/a").text == "old"
    assert rule_of(app).held
    assert app.snapshot().policies[0].synced
    app.close()


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_change_is_in_force_within_a_second(driver: Any, tmp_path: Path):
    """In two processes' worth of middlewares, up and back."""
    url = f"file:{tmp_path}/rollout.toml"
    apps = [following(driver, url, percent=0) for _ in range(2)]
    for percent, text in ((100, "new"), (0, "old")):
        begun = time.monotonic()
        open_store(url).change("r", percent, who="ann")
        for app in apps:
            until(partial(answers, driver, app, text))
        # A generous bound for a busy machine: a look every quarter of a second is the rule.
        assert time.monotonic() - begun < 5
    for app in apps:
        app.close()


@pytest.mark.parametrize("driver", DRIVERS)
def test_until_the_store_has_answered_all_is_old(driver: Any, monkeypatch: pytest.MonkeyPatch):
    """It may say that the new stack was taken back: the code's share is no safe guess."""
    monkeypatch.setattr("resilience_mw.rollout.link.FIRST_LOOK", 0.01)
    store = Hanging()
    app = following(driver, store)
    assert driver.get(app, "/a").text == "old"
    assert not app.snapshot().policies[0].synced
    store.go.set()
    until(lambda: driver.get(app, "/a").text == "new")
    assert app.snapshot().policies[0].synced
    app.close()


@pytest.mark.parametrize("driver", DRIVERS)
def test_when_it_is_closed_the_last_shares_stand(driver: Any, tmp_path: Path):
    """And nobody follows any more."""
    url = f"file:{tmp_path}/rollout.toml"
    app = following(driver, url)
    threads = {thread for thread in threading.enumerate() if thread.name == "resilience_mw.rollout"}
    app.close()
    app.close()
    until(lambda: not any(thread.is_alive() for thread in threads))
    assert driver.get(app, "/a").text == "new"


def test_a_second_lifespan_follows_again(tmp_path: Path):
    """A server that starts the same app again has shares that move."""
    url = f"file:{tmp_path}/rollout.toml"
    app = following(ASGI, url)
    run(lifespan(app))
    open_store(url).change("r", 0, who="ann")
    run(lifespan(app))
    assert ASGI.get(app, "/a").text == "old"


def test_a_middleware_that_is_dropped_ends_its_thread(tmp_path: Path):
    """Tests and reloads make many of them."""
    app = following(WSGI, f"file:{tmp_path}/rollout.toml")
    reference = weakref.ref(app)
    del app
    gc.collect()
    assert reference() is None


def test_without_a_store_no_thread_is_started():
    """The shares are those of the code."""
    before = threading.active_count()
    app = following(WSGI, None)
    assert threading.active_count() == before
    assert WSGI.get(app, "/a").text == "new"


def test_the_log_says_that_the_store_is_away(caplog: pytest.LogCaptureFixture, tmp_path: Path):
    """Once, however long it lasts."""
    path = tmp_path / "rollout.toml"
    path.write_text("this is = = no TOML")
    with caplog.at_level(logging.WARNING, "resilience_mw"):
        app = following(WSGI, f"file:{path}")
        time.sleep(0.6)
    assert WSGI.get(app, "/a").text == "old"
    assert len([r for r in caplog.records if "store" in r.getMessage()]) == 1
    app.close()
