"""One Redis for all tests that do it no harm, and followers that are closed after the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from resilience_mw.rollout.follower import Follower
from tests.rollout.redis_server import RedisServer
from tests.rollout.stores.following import Applied, Fragile


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.fixture
def store(tmp_path: Path) -> Fragile:
    return Fragile(tmp_path / "rollout.toml")


@pytest.fixture
def applied() -> Applied:
    return Applied()


@pytest.fixture
def follow(store: Fragile, applied: Applied) -> Iterator[Callable[..., Follower]]:
    """Make followers of the store, closed after the test."""
    made: list[Follower] = []

    def make(**options: Any) -> Follower:
        made.append(Follower(store, applied, **options))
        return made[-1]

    yield make
    for follower in made:
        follower.close()
