"""When workers that die are not replaced any more: one rule for every server."""

from __future__ import annotations

CRASHES = 5
"""So many workers in a row that die soon after their start are a crash loop."""

SOON = 10.0
"""Seconds; a worker that has lived for longer is no part of a crash loop."""

EXIT_CODE = 3
"""Of the whole server: the code for "did not start", which Gunicorn and Uvicorn share."""

MESSAGE = f"{CRASHES} workers in a row died within {SOON:g} s of their start"


class CrashLoop:
    """Counts the workers that died, one after the other, soon after their start.

    Attributes:
        strikes: how many it has been in a row.
    """

    def __init__(self) -> None:
        self.strikes = 0

    def died(self, lived: float) -> bool:
        """Note a worker that died by itself; returns whether there is no point in another.

        Args:
            lived: seconds since it was started.
        """
        self.strikes = self.strikes + 1 if lived <= SOON else 0
        return self.strikes >= CRASHES
