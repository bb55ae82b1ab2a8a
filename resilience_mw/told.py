"""Whether this process has been told to stop, which whoever runs it may know before the app does.

A loop that is blocked, or a worker whose threads are all taken, hears of it late; probes that are
answered apart from them need not.
"""

from __future__ import annotations

from collections.abc import Callable

_heeded: list[Callable[[], bool]] = []


def heed(told: Callable[[], bool]) -> None:
    """Ask ``told``, too, from now on; any thread may do so at any time."""
    _heeded.append(told)


def told_to_stop() -> bool:
    """Return whether anybody knows of a stop."""
    return any(told() for told in _heeded)
