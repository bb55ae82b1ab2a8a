"""What the tests of the built-in checks get."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.health.checks.peer import Peer


@pytest.fixture
def peer() -> Iterator[Callable[..., Peer]]:
    """Start a peer, and stop it after the test: `upstream = peer(status(500))`."""
    with ExitStack() as peers:

        def start(*args: object, **options: object) -> Peer:
            return peers.enter_context(Peer(*args, **options))  # type: ignore[arg-type]

        yield start
