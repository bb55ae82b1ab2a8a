"""Waitress with the times of the options, and a drain at SIGTERM.

python serve_waitress.py app:app 0.0.0.0:8000
"""

from __future__ import annotations

import importlib
import signal
import sys
import time
from typing import Any

from waitress import wasyncore
from waitress.channel import HTTPChannel
from waitress.server import create_server
from waitress.task import WSGITask

from resilience_mw.runner.wrap import wrap

PERIOD = 0.1
HEAD_GRACE = 5.0
THREADS = 8


class Task(WSGITask):
    """A request whose response is the last of its connection, once the drain has begun."""

    draining = False

    def build_response_header(self) -> Any:
        """Say so. A WSGI app must not: Waitress would answer 500."""
        head = super().build_response_header()
        if not Task.draining or self.close_on_finish:
            return head
        self.close_on_finish = True
        return head[:-2] + b"Connection: close\r\n\r\n"


class Channel(HTTPChannel):
    """A connection with such requests."""

    task_class = Task


def main(name: str, listen: str) -> int:
    """Serve until SIGTERM; returns the exit code."""
    module, _, attribute = name.partition(":")
    protected = wrap(getattr(importlib.import_module(module), attribute))  # unless it is already
    runner = protected.config.runner
    sockets: dict[int, Any] = {}
    server: Any = create_server(
        protected.app,
        map=sockets,
        listen=listen,
        threads=THREADS,
        # Without activity for so long; the same for an idle connection and a stalled head.
        channel_timeout=max(1, round(runner.keep_alive_timeout)),
        cleanup_interval=1,
        connection_limit=1000,  # idle connections count
    )
    server.channel_class = Channel
    told: list[float] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: told.append(time.monotonic()))
    while not told:
        wasyncore.loop(timeout=PERIOD, map=sockets, count=1)

    Task.draining = True
    protected.drain()
    closes = told[0] + runner.drain_delay
    while time.monotonic() < closes and len(told) == 1:
        wasyncore.loop(timeout=PERIOD, map=sockets, count=1)

    wasyncore.dispatcher.close(server)  # the listener alone: refused from now on
    ends = time.monotonic() + runner.shutdown_timeout
    heads = min(ends, time.monotonic() + HEAD_GRACE)
    while server.active_channels and time.monotonic() < ends and len(told) == 1:
        for channel in list(server.active_channels.values()):
            begun = channel.requests or channel.total_outbufs_len
            if not begun and (channel.request is None or time.monotonic() > heads):
                channel.will_close = True
        wasyncore.loop(timeout=PERIOD, map=sockets, count=1)
    return 1 if any(channel.requests for channel in server.active_channels.values()) else 0


if __name__ == "__main__":
    sys.path.insert(0, "")
    sys.exit(main(*sys.argv[1:]))
