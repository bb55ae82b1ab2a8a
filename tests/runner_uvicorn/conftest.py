"""What the tests of the runner get."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    """Close what was opened: `client = opened.enter_context(Client(server))`."""
    with ExitStack() as stack:
        yield stack
