"""A real Redis on loopback, which a test may kill, stop, fill and start again."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import redis

from benchmarks.process import HOST, Server, free_port

PROGRAM = shutil.which("redis-server") or shutil.which("valkey-server") or "redis-server"


class RedisServer:
    """One server on one port, without a disk; a context manager.

    Args:
        arguments: further arguments of `redis-server`.
    """

    def __init__(self, *arguments: str) -> None:
        self.port = free_port()
        self.arguments = arguments
        self._process: Server | None = None

    @property
    def url(self) -> str:
        return f"redis://{HOST}:{self.port}/0"

    def start(self) -> Self:
        """Start it, again on the same port, and wait until it answers."""
        command = [PROGRAM, "--port", str(self.port), "--bind", HOST, "--save", ""]
        command += ["--appendonly", "no", "--daemonize", "no", *self.arguments]
        # A replica leaves a file in its directory, which a later server there would read.
        self._directory = tempfile.TemporaryDirectory(prefix="redis-")
        self._process = Server(command, self.port, cwd=Path(self._directory.name))
        self._process.wait_until_serving()
        return self

    def kill(self) -> None:
        """End it without a word to its clients."""
        if self._process is not None:
            self._process.kill()
            self._process = None
            self._directory.cleanup()

    @contextmanager
    def admin(self) -> Iterator[Any]:
        """A connection of a person who looks after the server."""
        client: Any = redis.Redis(port=self.port, decode_responses=True)
        try:
            yield client
        finally:
            client.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill()
