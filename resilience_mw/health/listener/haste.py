"""Shorter turns of the interpreter while many threads compute, so that a probe need not queue.

A thread that wants to run waits for a switch interval (5 ms unless somebody has set it), and then
for as many others as want to run, too. With one thread that computes that is little; with eight, a
tenth of a second. So for as long as ours waits long, and no longer, the interval is shorter.
"""

from __future__ import annotations

import sys

LONG = 0.02
"""Seconds: four intervals, so that one thread that computes, or a few, change nothing. Shorter
turns cost those that compute some of their speed."""

SOON = 0.004
"""Seconds: as little as only few threads make us wait."""

SHORT = 0.001
"""Seconds of a shorter interval."""

NEWEST = 0.4
"""Weight of the newest wait in the average, which decides: one may be the system's doing."""

CALM = 20
"""Short waits in a row until it is as it was."""


class Haste:
    """Sets the switch interval, and sets it back; leaves alone what somebody else has set since.

    The thread that waits calls `waited`, and in the end `stop`.
    """

    def __init__(self) -> None:
        self._usual: float | None = None
        self._average = 0.0
        self._calm = 0

    def waited(self, seconds: float) -> None:
        """Note for how long the thread has waited for the interpreter."""
        self._average += NEWEST * (seconds - self._average)
        self._calm = self._calm + 1 if seconds < SOON else 0
        if self._usual is None:
            if self._average > LONG and sys.getswitchinterval() > SHORT:
                self._usual = sys.getswitchinterval()
                sys.setswitchinterval(SHORT)
        elif self._calm >= CALM:
            self.stop()

    def stop(self) -> None:
        """Set the interval back."""
        if self._usual is not None and abs(sys.getswitchinterval() - SHORT) < 1e-5:
            sys.setswitchinterval(self._usual)
        self._usual = None
