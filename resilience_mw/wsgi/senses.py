"""Let the adaptive gates of a guard sense the threads they run in."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.adaptive import AdaptiveGate
from ..types import Environ


class ThreadSenses:
    """Measures threads and process CPU while there is a gate that needs it.

    The guard calls `enter` and `exit` under its lock.
    """

    def __init__(self, gates: Sequence[AdaptiveGate]) -> None:
        self._gates = gates

    def queue_wait(self, environ: Environ, now: float) -> float:
        """Return for how many seconds the request waited for the thread it has now."""
        return 0.0

    def enter(self, now: float) -> None:
        """Count the calling thread as busy."""

    def exit(self, now: float) -> None:
        """Count one thread less as busy."""
