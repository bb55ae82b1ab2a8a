"""Where the code that is running stands in the life of a server, as far as that can be told."""

from __future__ import annotations

import sys
from enum import Enum
from types import FrameType
from typing import Any

from ...signals.tcp import listening_sockets


class Place(Enum):
    """Who imports the app that is being wrapped."""

    WORKER = "a worker of Gunicorn, which is about to serve"
    MASTER = "Gunicorn's master, which is about to fork workers"
    ANYWHERE = "another server, or a command that will never serve"


def place() -> Place:
    """Return who has called, at whatever depth."""
    worker = _class("gunicorn.workers.base", "Worker")
    arbiter = _class("gunicorn.arbiter", "Arbiter")
    if arbiter is None:
        return Place.ANYWHERE
    found = Place.ANYWHERE
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        owner = frame.f_locals.get("self")
        if worker is not None and isinstance(owner, worker):
            return Place.WORKER
        if isinstance(owner, arbiter):
            found = Place.MASTER
        frame = frame.f_back
    return found


def forking_worker() -> bool:
    """Whether Gunicorn's master is just forking a worker, and nothing else."""
    arbiter = _class("gunicorn.arbiter", "Arbiter")
    frame: FrameType | None = sys._getframe() if arbiter is not None else None
    while frame is not None:
        if frame.f_code.co_name == "spawn_worker" and isinstance(
            frame.f_locals.get("self"), arbiter
        ):
            return True
        frame = frame.f_back
    return False


def is_serving() -> bool:
    """Whether this process has a listening socket, which none but a server has."""
    return bool(listening_sockets())


def _class(module: str, name: str) -> Any:
    return getattr(sys.modules.get(module), name, None)
