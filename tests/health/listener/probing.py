"""Probes of a port, as an orchestrator sends them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from benchmarks.process import HOST
from benchmarks.talk import Answer, get


class Port(NamedTuple):
    """Where a listener is, or is going to be."""

    port: int
    host: str = HOST

    def ask(self, path: str = "/readyz", timeout: float = 5.0) -> Answer | None:
        """Return the answer; ``None`` = nobody listens."""
        try:
            return get(self, path, timeout)
        except ConnectionError:
            return None

    def status(self, path: str = "/readyz") -> int:
        """Return the status of the answer; 0 = there is none."""
        answer = self.ask(path)
        return 0 if answer is None else answer.status


def until(truth: Callable[[], object], timeout: float = 20.0) -> float:
    """Wait until something holds, and return how many seconds that took.

    Raises:
        AssertionError: it does not in time.
    """
    begun = time.monotonic()
    while not truth():
        assert time.monotonic() - begun < timeout, "not in time"
        time.sleep(0.005)
    return time.monotonic() - begun
