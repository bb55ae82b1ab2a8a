"""Wait for what happens in another thread."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from resilience_mw.core import CheckResult
from resilience_mw.health import Monitor

PATIENCE = 10.0
"""Seconds after which something that should have happened long ago fails the test."""


def until(condition: Callable[[], object]) -> None:
    """Wait until ``condition`` holds."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.002)


@contextmanager
def asking(checks: Any, **options: Any) -> Iterator[Monitor]:
    """Have a monitor ask ``checks`` meanwhile."""
    monitor = Monitor(checks, **options)
    monitor.start()
    try:
        yield monitor
    finally:
        monitor.close()


def only(monitor: Monitor) -> CheckResult:
    """Return what is known of the only check."""
    (result,) = monitor.results()
    return result


def in_child(work: Callable[[], bool]) -> bool:
    """Whether ``work`` returns True in a forked child."""
    pid = os.fork()
    if not pid:
        code = 1
        try:
            code = 0 if work() else 2
        finally:
            os._exit(code)
    return os.waitpid(pid, 0)[1] == 0
