"""What the tests of the follower have in common."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from resilience_mw.core.rollout import Share
from resilience_mw.rollout.stores import Change, Store, open_store


class Applied:
    """What a process was told, newest last."""

    def __init__(self) -> None:
        self.states: list[dict[str, Share]] = []

    def __call__(self, shares: Mapping[str, Share]) -> None:
        self.states.append(dict(shares))


class Fragile(Store):
    """A real file store, reached over a line that the test can cut."""

    def __init__(self, path: Path) -> None:
        self.real = open_store(f"file:{path}")
        self.name = "fragile"
        self.interval = 0.02
        self.cut: Exception | None = None

    def _reached(self) -> Store:
        if self.cut is not None:
            raise self.cut
        return self.real

    def load(self) -> Mapping[str, Share]:
        return self._reached().load()

    def history(self, limit: int = 20) -> Sequence[Change]:
        return self._reached().history(limit)

    def transact(self, *arguments):
        return self._reached().transact(*arguments)


def until(true: Callable[[], object], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)
