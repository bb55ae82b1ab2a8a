"""What Gunicorn would run with, found without starting it: for `resilience-mw check`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gunicorn.app.base import Application
from gunicorn.config import Config as Settings
from gunicorn.config import get_default_config_file

from ..drain import MARGIN
from . import resolving
from .families import Family, family_of

OURS = "python:resilience_mw.runner.gunicorn"


@dataclass(frozen=True)
class Server:
    """The settings that matter here, and the variables of the configuration file."""

    location: str
    keepalive: float
    timeout: float
    graceful_timeout: float
    threads: int
    ports: tuple[int, ...]
    worker_class: str
    family: Family
    namespace: Mapping[str, Any]
    ours: bool
    """Whether the configuration brings our adapter in."""


class _Reader(Application):  # type: ignore[misc]
    """Reads configuration as Gunicorn does, and nothing of the command line, which is ours."""

    def load_config(self) -> None:
        """Nothing: `read` does it."""


def read(location: str | None, arguments: list[str]) -> Server:
    """Read a configuration file, ``GUNICORN_CMD_ARGS`` and further arguments, in this order.

    Args:
        location: of the file, as for ``gunicorn -c``. ``None`` = that of ``GUNICORN_CMD_ARGS``,
            else a ``gunicorn.conf.py`` here, else our own configuration.
        arguments: as on Gunicorn's command line.

    Raises:
        RuntimeError: the file is missing, or a setting has a wrong value.
    """
    reader = _Reader(prog="gunicorn")
    cfg = Settings(prog="gunicorn")
    reader.cfg = cfg
    parser = cfg.parser()
    from_env = parser.parse_args(cfg.get_cmd_args_from_env())
    chosen: str = location or from_env.config or get_default_config_file() or OURS
    namespace: Mapping[str, Any] = reader.load_config_from_module_name_or_filename(chosen)
    for given in (from_env, parser.parse_args(arguments)):
        for name, value in vars(given).items():
            if value is not None and name != "args":
                cfg.set(name.lower(), value)
    theirs = {
        name: getattr(cfg, name)
        for name in resolving.MAPPED
        if getattr(cfg, name) != namespace.get(name)
    }
    ours = getattr(namespace.get("nworkers_changed"), "__module__", "").startswith(__package__)
    exact = _exact(namespace) if ours else {}
    values = {name: exact.get(name, getattr(cfg, name)) for name in resolving.MAPPED} | theirs
    family = family_of(cfg.worker_class)
    return Server(
        location=os.path.relpath(chosen) if os.path.exists(chosen) else chosen,
        threads=cfg.threads,
        ports=tuple(where[1] for where in cfg.address if isinstance(where, tuple)),
        worker_class=str(cfg.worker_class_str),
        family=family,
        namespace=namespace,
        ours=ours,
        **values,
    )


def _exact(namespace: Mapping[str, Any]) -> dict[str, float]:
    """What our hooks will set, unless the file says it itself."""
    offered = resolving.settings(resolving.from_conf({}).config)
    config = resolving.from_conf(namespace).config
    exact: dict[str, float] = {
        **resolving.settings(config),
        "keepalive": config.runner.keep_alive_timeout,
        "graceful_timeout": config.runner.shutdown_timeout + MARGIN,
    }
    return {n: v for n, v in exact.items() if namespace.get(n) == offered[n]}
