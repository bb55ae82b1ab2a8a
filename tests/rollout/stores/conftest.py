"""One Redis for all tests that do it no harm."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.rollout.redis_server import RedisServer


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server
