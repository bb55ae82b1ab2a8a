"""Look at a roll-out's guard while no request does, because all of them hang."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from functools import partial

from ..core.rollout.meter import Meter
from .section import Section

PERIOD = 0.5
"""Seconds between two looks for requests that hang."""


class Watch:
    """A thread that is there as long as requests wait for an answer.

    A new stack that hangs takes one of the server's threads after another; then nobody comes any
    more who would look. This one does, so that the other servers hear of it.

    Args:
        meters: whose requests are watched.
        section: the lock under which counts change.
    """

    def __init__(self, meters: Sequence[Meter], section: Section) -> None:
        self._meters = meters
        self._section = section
        self._thread: threading.Thread | None = None

    def look(self, meter: Meter, now: float) -> None:
        """Look now, and see to it that somebody will."""
        self._section.soon(partial(meter.look, now))
        thread = self._thread
        # A forked child has the object, and no thread that runs.
        if thread is None or not thread.is_alive():
            self._thread = threading.Thread(
                target=self._run, name="resilience_mw.rollout.watch", daemon=True
            )
            self._thread.start()

    def _run(self) -> None:
        while any(meter.running for meter in self._meters):
            time.sleep(PERIOD)
            now = time.monotonic()
            for meter in self._meters:
                if now >= meter.look_at:
                    self._section.soon(partial(meter.look, now))
