"""Put our layer in front of what the user has chosen: the worker class, and the hooks."""

from __future__ import annotations

import logging
import os
from typing import Any

from ...exceptions import ConfigError
from .base import Adapted
from .compose import compose
from .families import family_of
from .master import Master
from .resolving import in_force

_ATTRIBUTE = "resilience_mw"
"""Of the arbiter: its `Master`."""


def install(server: Any, exported: dict[str, int]) -> None:
    """Bring everything into an arbiter: once a configuration, however many hooks ask for it.

    Args:
        server: Gunicorn's arbiter, whose configuration and worker class are known.
        exported: the settings that we offered, by which the user's own are told.
    """
    master: Master | None = getattr(server, _ATTRIBUTE, None)
    cfg = server.cfg
    if isinstance(server.worker_class, type) and issubclass(server.worker_class, Adapted):
        return
    try:
        force = in_force(cfg, exported)
    except ConfigError as error:
        raise RuntimeError(f"resilience_mw: {error}") from None  # which Gunicorn shows as one line
    _lend_handlers(server.log)
    if master is None:
        master = Master(server, force)
        setattr(server, _ATTRIBUTE, master)
    master.force = force
    for name in ("when_ready", "pre_fork", "child_exit", "on_exit"):
        _add(cfg, name, getattr(master, name))
    _add(cfg, "post_worker_init", protect_app)
    _add(cfg, "worker_exit", end_process)
    server.worker_class = adapted(server.worker_class, master)


def adapted(worker_class: type, master: Master) -> type:
    """Return a subclass of a worker class that does what the options say."""
    family = family_of(worker_class)
    return type(
        worker_class.__name__,
        (family.load(), worker_class),
        {"force": master.force, "shared": master.shared, "family": family},
    )


def protect_app(worker: Any) -> None:
    """Put the app of a worker that has just loaded it behind `protect()`, unless it is already."""
    if isinstance(worker, Adapted):
        worker.protect_app()


def end_process(server: Any, worker: Any) -> None:
    """Let nothing that still runs in a worker keep its process, once all else is done."""
    if isinstance(worker, Adapted) and worker.pid == os.getpid():
        worker.end_process()


def _add(cfg: Any, name: str, ours: Any) -> None:
    cfg.set(name, compose(name, getattr(cfg, name), ours))


def _lend_handlers(log: Any) -> None:
    """Let what we log appear where Gunicorn's own messages do, unless somebody asked for else."""
    ours = logging.getLogger("resilience_mw")
    if not ours.handlers and ours.level == logging.NOTSET:
        ours.handlers = log.error_log.handlers
        ours.setLevel(log.error_log.level)
        ours.propagate = False
