"""Granian with the times of the options, and a drain at SIGTERM.

APP=app:app python serve_granian.py 0.0.0.0 8000 --workers 2
"""

from __future__ import annotations

import argparse
import importlib
import math
import os
import signal
import sys
import threading
from typing import Any

from granian import Granian
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings

from resilience_mw import Config
from resilience_mw.runner.closing import Closing
from resilience_mw.runner.wrap import wrap

DRAIN = signal.SIGUSR1
"""By which the parent tells its workers, each of which has a guard of its own."""


def worker() -> Any:
    """Make the app of one worker, and listen to the parent."""
    module, _, name = os.environ["APP"].partition(":")
    app = getattr(importlib.import_module(module), name)
    protected = wrap(app)  # unless it is already
    outer = Closing(protected.app)

    def drain(number: int, frame: Any) -> None:
        outer.draining = True
        protected.drain()

    signal.signal(DRAIN, drain)
    return outer


class Server(Granian):  # type: ignore[misc, valid-type]
    """Granian, which goes on for the `drain_delay` after its first signal."""

    told = False
    delay = 0.0

    def signal_handler_interrupt(self, *args: Any, **kwargs: Any) -> None:
        """Hear SIGTERM or Ctrl-C."""
        if self.told:
            super().signal_handler_interrupt(*args, **kwargs)
            return
        self.told = True
        for one in self.wrks:
            os.kill(one.inner.pid, DRAIN)
        timer = threading.Timer(self.delay, super().signal_handler_interrupt)
        timer.daemon = True
        timer.start()


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser()
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    runner = Config.from_env().runner
    signal.signal(DRAIN, signal.SIG_IGN)  # until a worker listens to it
    server = Server(
        "serve_granian:worker",
        factory=True,
        address=given.host,
        port=given.port,
        workers=given.workers,
        interface=Interfaces.ASGI,
        # "auto" waits for ever for the first byte of a connection.
        http=HTTPModes.http1,
        # One time for heads and for idle connections, in milliseconds.
        http1_settings=HTTP1Settings(header_read_timeout=int(1000 * runner.keep_alive_timeout)),
        workers_kill_timeout=math.ceil(runner.shutdown_timeout),
    )
    server.delay = runner.drain_delay
    server.serve()


if __name__ == "__main__":
    sys.path.insert(0, "")
    main()
