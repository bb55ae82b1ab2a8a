"""Serve an ASGI app with Uvicorn: the times of the options, and a stop without a failed request.

run("app:app")                                                  # as `resilience-mw run` does
run(app, Config(runner=Runner(drain_delay=5)), workers=4)
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from typing import Any, Literal

from uvicorn.config import STARTUP_FAILURE

from ...config import Config, Runner
from ...exceptions import ConfigError
from .accept import bind, logger
from .config import UvicornConfig
from .protocol import protocol
from .server import Server
from .supervisor import Supervisor

__all__ = ["Server", "UvicornConfig", "protocol", "run"]


def run(
    app: Any,
    config: Config | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    workers: int = 1,
    http: Literal["auto", "httptools", "h11"] = "auto",
    **options: Any,
) -> int:
    """Serve until a signal says to stop, and return the exit code, with which to end the process.

    0 = stopped; 1 = something had to be forced; 3 = did not start, or workers kept dying.

    Args:
        app: an ASGI app, or ``module:attribute``. With several workers, each imports it.
        config: our options given by flags or in code; what they leave out comes from the
            environment, the framework's settings and the defaults.
        host: a name or an address.
        port: 0 = any that is free.
        workers: processes; they share the port.
        http: the parser; ``auto`` is httptools if it is installed.
        options: further arguments of ``uvicorn.Config``, such as ``loop`` or ``access_log``.

    Raises:
        ConfigError: an option is unknown or breaks a rule.
    """
    if workers < 1:
        raise ConfigError(f"workers must be >= 1, got {workers}")
    if workers > 1 and not hasattr(os, "fork"):
        raise ConfigError(f"workers must be 1 where processes cannot fork, got {workers}")
    served = UvicornConfig(app, config, http=http, host=host, port=port, **options)
    try:
        sock = bind(host, port, uds=served.uds, fd=served.fd)
    except OSError as error:
        logger.error("cannot bind to %s, port %d: %s", host, port, error.strerror or error)
        return STARTUP_FAILURE
    with sock:
        if workers == 1:
            return _serve(served, [sock])

        def serve(
            sockets: Sequence[socket.socket], parent: int, announce: Callable[[Runner], None]
        ) -> int:
            return _serve(served, list(sockets), parent, announce)

        return Supervisor(workers, [sock], serve, served.runner).run()


def _serve(
    config: UvicornConfig,
    sockets: list[socket.socket],
    parent: int | None = None,
    announce: Callable[[Runner], None] | None = None,
) -> int:
    server = Server(config, parent=parent, announce=announce)
    try:
        server.run(sockets)
    except SystemExit as stop:  # Uvicorn's way of not starting
        code = stop.code if isinstance(stop.code, int) else 1
        return code if code or server.should_exit else STARTUP_FAILURE  # told, or the app's own
    return server.exit_code
