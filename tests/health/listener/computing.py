"""Threads that compute and never wait."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def computing(count: int = 8) -> Iterator[None]:
    """Have so many of them run meanwhile."""
    over = threading.Event()

    def compute() -> None:
        while not over.is_set():
            sum(range(1000))

    threads = [threading.Thread(target=compute, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()
