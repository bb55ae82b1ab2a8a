"""Who protects: we, nobody, and what others offer; each as a server that is running."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, cast

from benchmarks import servers
from benchmarks.apps import protection as choice
from benchmarks.apps import work
from benchmarks.load import Target
from benchmarks.overload import envoy
from benchmarks.overload.workloads import APPS, Interface
from benchmarks.process import Server

OURS = "ours"
# The same middleware under our runner, which refuses in the protocol: no peer, and no goal of its
# own.
RUNNER = "ours-runner"

# WSGI servers get as many threads.
THREADS = 8

NATIVE: dict[Interface, str] = {"asgi": "uvicorn", "wsgi": "gunicorn"}


@dataclass(frozen=True, slots=True)
class Protection:
    """One protection.

    Attributes:
        name: what options and results call it.
        title: what it is, for people.
        wrap: how the app is wrapped, in the words of `benchmarks.apps.protection`.
        args: arguments of the server.
        granian: served by Granian, not by Uvicorn or Gunicorn.
        runner: Uvicorn or Gunicorn are started by our runner.
        front: behind Envoy.
        interfaces: where it exists.
    """

    name: str
    title: str
    wrap: str = "none"
    args: tuple[str, ...] = ()
    granian: bool = False
    runner: bool = False
    front: bool = False
    interfaces: tuple[Interface, ...] = ("asgi", "wsgi")

    def server(self, interface: Interface) -> str:
        """Which server runs the app."""
        return "granian" if self.granian else NATIVE[interface]


PROTECTIONS = {
    protection.name: protection
    for protection in (
        Protection(OURS, "protect(), defaults", wrap="default"),
        Protection(RUNNER, "protect() under our runner", wrap="default", runner=True),
        Protection("none", "nothing"),
        Protection("aimd", 'protect(), law "aimd"', wrap="aimd"),
        Protection(
            "uvicorn-10",
            "Uvicorn --limit-concurrency 10",
            args=("--limit-concurrency", "10"),
            interfaces=("asgi",),
        ),
        Protection(
            "uvicorn-100",
            "Uvicorn --limit-concurrency 100",
            args=("--limit-concurrency", "100"),
            interfaces=("asgi",),
        ),
        Protection(
            "granian-10", "Granian --backpressure 10", args=("--backpressure", "10"), granian=True
        ),
        Protection("envoy", "Envoy adaptive_concurrency in front", front=True),
    )
}


@dataclass(frozen=True, slots=True)
class Machine:
    """Where things run.

    Attributes:
        server_cpu: the CPU of the servers; `None` if nothing can be pinned.
        client_cpu: the CPU of the generator and of Envoy.
        steps: of `benchmarks.apps.work`, a millisecond.
    """

    server_cpu: int | None
    client_cpu: int | None
    steps: int


@dataclass(frozen=True, slots=True)
class Serving:
    """A server that is running, and perhaps a proxy before it."""

    server: Server
    front: Server | None

    def target(self, path: str) -> Target:
        """What clients are to ask for."""
        entrance = self.front or self.server
        return Target(entrance.host, entrance.port, path)


@contextlib.contextmanager
def serving(
    machine: Machine,
    interface: Interface,
    loop: str,
    *,
    server: str,
    wrap: str = "none",
    args: tuple[str, ...] = (),
    runner: bool = False,
    front: bool = False,
) -> Iterator[Serving]:
    """Run the app, and end what was started without waiting: its queue may be minutes long."""
    env = {choice.VARIABLE: wrap, work.VARIABLE: str(machine.steps)}
    with contextlib.ExitStack() as stack:
        started_by = "runner" if runner else server
        running = _launch(started_by, interface, loop, args, env, machine.server_cpu)
        stack.callback(running.kill)
        proxy = envoy.envoy(running.port, cpu=machine.client_cpu) if front else None
        if proxy is not None:
            stack.callback(proxy.kill)
        yield Serving(running, proxy)


def _launch(
    server: str,
    interface: Interface,
    loop: str,
    args: tuple[str, ...],
    env: dict[str, str],
    cpu: int | None,
) -> Server:
    app = APPS[interface]
    if server == "runner":
        own = cast(Literal["asyncio", "uvloop"], "asyncio" if interface == "wsgi" else loop)
        return servers.runner(app, loop=own, threads=THREADS, args=args, env=env, cpu=cpu)
    if server == "gunicorn":
        return servers.gunicorn(app, threads=THREADS, args=args, env=env, cpu=cpu)
    if interface == "wsgi":
        threads = ("--blocking-threads", str(THREADS))
        return servers.granian(app, interface="wsgi", args=(*args, *threads), env=env, cpu=cpu)
    kind = cast(Literal["asyncio", "uvloop"], loop)
    if server == "granian":
        return servers.granian(app, loop=kind, args=args, env=env, cpu=cpu)
    return servers.uvicorn(app, loop=kind, args=args, env=env, cpu=cpu)
