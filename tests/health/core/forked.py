"""A monitor in a process that forks, in an interpreter of its own: see `test_lives`."""

from __future__ import annotations

import os
import sys
import threading

from resilience_mw.health import Check, Monitor
from tests.health.core.waiting import in_child, until


def main(touched: bool) -> bool:
    """Whether parent and child ask as they should."""
    asked: list[int] = []
    monitor = Monitor({"db": Check(lambda: asked.append(os.getpid()), interval=0.01)})
    monitor.start()
    until(lambda: monitor.ready)
    if touched:
        monitor.touch()

    def child() -> bool:
        if touched:
            assert monitor.ready is False
            monitor.touch()
        until(lambda: monitor.ready and os.getpid() in asked)
        return True

    asks = in_child(child)
    running = [thread for thread in threading.enumerate() if thread.name == "resilience-mw-health"]
    monitor.close()
    return asks and bool(running) is touched  # a process that only forks has none


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1] == "True"))
