"""Start real servers, one function each.

    from benchmarks.servers import uvicorn

    with uvicorn("benchmarks.apps.asgi:app", env={"PROTECT": "default"}) as server:
        print(server.url)

Each takes an import string and returns a running `Server` on a free loopback port. `args` are
further arguments of the server's own command line; `Options` lists what all of them take.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypedDict, Unpack

from benchmarks.process import HOST, ROOT, Server, ServerError, free_port

__all__ = [
    "Options",
    "Server",
    "ServerError",
    "granian",
    "gunicorn",
    "hypercorn",
    "runner",
    "start",
    "uvicorn",
    "waitress",
]

ATTEMPTS = 3

WORKER_CLASSES = {
    "uvicorn-worker": "uvicorn_worker.UvicornWorker",
    "uvicorn-worker-h11": "uvicorn_worker.UvicornH11Worker",
}


class Options(TypedDict, total=False):
    """What every launcher takes.

    Attributes:
        env: variables beside those of this process.
        cwd: the directory to run in.
        cpu: pin the server to this CPU, where the system can.
        timeout: seconds until it must answer.
    """

    env: Mapping[str, str] | None
    cwd: Path
    cpu: int | None
    timeout: float


def uvicorn(
    app: str,
    *,
    http: Literal["h11", "httptools"] = "httptools",
    loop: Literal["asyncio", "uvloop"] = "uvloop",
    args: Sequence[str] = (),
    **options: Unpack[Options],
) -> Server:
    """Uvicorn, one process, without an access log."""
    flags = ["--http", http, "--loop", loop, "--no-access-log", *args, app]
    return start(
        lambda port: [*_module("uvicorn"), "--host", HOST, "--port", str(port), *flags],
        **options,
    )


def gunicorn(
    app: str,
    *,
    worker: str = "gthread",
    workers: int = 1,
    threads: int = 8,
    args: Sequence[str] = (),
    **options: Unpack[Options],
) -> Server:
    """Gunicorn; `worker` is sync, gthread, gevent, asgi, or the path of a class.

    `uvicorn-worker` and `uvicorn-worker-h11` stand for that package's two classes, and `threads`
    counts for gthread only.
    """
    flags = ["--worker-class", WORKER_CLASSES.get(worker, worker), "--workers", str(workers)]
    if worker == "gthread":
        flags += ["--threads", str(threads)]
    # Its control socket has one path for all servers of a user.
    flags += ["--no-control-socket", *args, app]
    return start(lambda port: [*_module("gunicorn"), "--bind", f"{HOST}:{port}", *flags], **options)


def hypercorn(
    app: str,
    *,
    worker: Literal["asyncio", "uvloop"] = "asyncio",
    args: Sequence[str] = (),
    **options: Unpack[Options],
) -> Server:
    """Hypercorn, one worker."""
    flags = ["--worker-class", worker, *args, app]
    return start(
        lambda port: [*_module("hypercorn"), "--bind", f"{HOST}:{port}", *flags], **options
    )


def granian(
    app: str,
    *,
    interface: Literal["asgi", "wsgi"] = "asgi",
    loop: Literal["asyncio", "uvloop"] = "asyncio",
    args: Sequence[str] = (),
    **options: Unpack[Options],
) -> Server:
    """Granian, one worker, HTTP/1 only."""
    flags = ["--interface", interface, "--loop", loop, "--http", "1", "--no-ws", *args, app]
    return start(
        lambda port: [*_module("granian"), "--host", HOST, "--port", str(port), *flags],
        **options,
    )


def waitress(
    app: str, *, threads: int = 4, args: Sequence[str] = (), **options: Unpack[Options]
) -> Server:
    """Waitress, with its default of four threads."""
    flags = [f"--threads={threads}", *args, app]
    return start(lambda port: [*_module("waitress"), f"--listen={HOST}:{port}", *flags], **options)


def runner(
    app: str,
    *,
    http: Literal["h11", "httptools"] = "httptools",
    loop: Literal["asyncio", "uvloop"] = "uvloop",
    threads: int = 8,
    args: Sequence[str] = (),
    **options: Unpack[Options],
) -> Server:
    """Our own runner: of Uvicorn for an ASGI app, of Gunicorn for a WSGI app."""
    flags = ["--http", http, "--loop", loop, "--threads", str(threads), *args, app]
    command = [*_module("resilience_mw"), "run"]
    return start(lambda port: [*command, "--host", HOST, "--port", str(port), *flags], **options)


def start(
    command: Callable[[int], Sequence[str]],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path = ROOT,
    cpu: int | None = None,
    timeout: float = 20.0,
) -> Server:
    """Start any server; `command` makes the arguments for a port. Returns once it answers.

    Raises:
        ServerError: it ended or did not answer in time; the message shows its last output.
    """

    def attempt() -> Server:
        port = free_port()
        server = Server(command(port), port, env=env, cwd=cwd, cpu=cpu)
        try:
            server.wait_until_serving(timeout)
        except BaseException:
            server.kill()
            raise
        return server

    for _ in range(ATTEMPTS - 1):
        try:
            return attempt()
        except ServerError as error:
            # Somebody may take the port between our look and the server's bind.
            if "in use" not in str(error).lower():
                raise
    return attempt()


def _module(name: str) -> list[str]:
    return [sys.executable, "-m", name]
