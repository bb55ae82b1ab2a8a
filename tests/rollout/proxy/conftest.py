"""The upstream of these tests: a process of its own, started once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from urllib.request import urlopen

import pytest

from tests.servers import Server, uvicorn


@pytest.fixture(scope="session")
def upstream() -> Iterator[Server]:
    """A real server with `upstream_app`."""
    with uvicorn("tests.rollout.proxy.upstream_app:app") as server:
        yield server


@pytest.fixture
def seen(upstream: Server) -> Callable[[str], int]:
    """How often something happened in the upstream: ``seen("left /hang")``."""

    def ask(what: str) -> int:
        with urlopen(f"{upstream.url}/state") as response:
            return int(json.load(response).get(what, 0))

    return ask
