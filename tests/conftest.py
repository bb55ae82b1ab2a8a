"""What every test gets."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from hypothesis import settings

from benchmarks.process import Server

# A shared machine may stop for longer than Hypothesis allows an example to take.
settings.register_profile("resilience", deadline=None)
settings.load_profile("resilience")


@pytest.fixture(scope="session", autouse=True)
def _no_settings_from_outside() -> None:
    """Options of the person who runs the tests must not change what the tests see."""
    for name in [name for name in os.environ if name.startswith("RESILIENCE_")]:
        del os.environ[name]


@pytest.fixture
def serve() -> Iterator[Callable[[Server], Server]]:
    """Take a started server, and stop it after the test: `server = serve(uvicorn(app))`."""
    with ExitStack() as servers:
        yield servers.enter_context
