"""Which processes belong to one server: those that come from the same parent."""

from __future__ import annotations

import os
import sys

_origin = os.getpid()


def become_origin() -> None:
    """Note that the workers of a server are about to be forked from this process."""
    global _origin
    _origin = os.getpid()


def family() -> int:
    """Return the process that the workers of this server have in common; maybe this one."""
    # Gunicorn says so when it runs; an app may import it and be run by another server.
    software = os.environ.get("SERVER_SOFTWARE", "")
    if "gunicorn.arbiter" in sys.modules and software.startswith("gunicorn/"):
        return os.getppid()  # only workers ask, and each is a child of the master
    multiprocessing = sys.modules.get("multiprocessing.process")
    parent = multiprocessing and multiprocessing.parent_process()
    if parent:
        return int(parent.pid)  # Uvicorn's, Hypercorn's and Granian's way of several workers
    return _origin


def related(one: int, other: int) -> bool:
    """Whether two families are one server: the same, or one in the place of the other.

    While Gunicorn replaces itself (USR2), the new master is a child of the old one.
    """
    return one == other or _parent(one) == other or _parent(other) == one


def _parent(pid: int) -> int | None:
    import psutil

    try:
        return psutil.Process(pid).ppid()
    except psutil.Error:
        return None
