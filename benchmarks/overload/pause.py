"""Stop a Python process as a pause of the garbage collector does."""

from __future__ import annotations

import ctypes

PAUSE_SECONDS = 0.4

# Longer than the measurement that needs it.
HOLD_SECONDS = 8.0


def pause(seconds: float = PAUSE_SECONDS) -> None:
    """Sleep without letting go of the interpreter's lock, so that no thread runs meanwhile."""
    ctypes.PyDLL(None).usleep(round(seconds * 1e6))
