"""Steady load on the shop, every answer of which is kept."""

from __future__ import annotations

import http.client
import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from benchmarks.process import Server

USERS = 300


@dataclass(frozen=True, slots=True)
class Visit:
    """One request and what came back."""

    began: float
    ended: float
    path: str
    user: str
    status: int
    """0 = no answer."""
    server: str
    stack: str


class Visitors:
    """Users who ask for two pages at an even rate, from a few threads; a context manager.

    Args:
        front: whom they ask.
        rate: requests a second.
        paths: what they ask for.
        patience: seconds after which they leave.
        threads: how many of them may wait at the same time.
    """

    def __init__(
        self,
        front: Server,
        rate: float,
        paths: Sequence[str] = ("/cart", "/item_collect.htm"),
        patience: float = 20.0,
        threads: int = 6,
    ) -> None:
        self.visits: list[Visit] = []
        self._paths = paths
        self._patience = patience
        self._front = front
        self._pause = threads / rate
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._visit, args=(seed,)) for seed in range(threads)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _visit(self, seed: int) -> None:
        rng = random.Random(seed)
        connection = http.client.HTTPConnection(
            self._front.host, self._front.port, timeout=self._patience
        )
        due = time.monotonic() + rng.random() * self._pause
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            due += self._pause
            path = rng.choice(self._paths)
            user = f"user-{rng.randrange(USERS)}"
            began = time.monotonic()
            status, server, stack = 0, "", ""
            try:
                connection.request("GET", path, headers={"Cookie": f"sid={user}"})
                response = connection.getresponse()
                stack = response.read().decode()
                status, server = response.status, response.headers.get("x-server", "")
            except (OSError, http.client.HTTPException):
                connection.close()
            ended = time.monotonic()
            self.visits.append(Visit(began, ended, path, user, status, server, stack))
        connection.close()
