"""What a server can do before anything goes wrong: capacity, work a request, cost of a refusal."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.load import Capacity, Target, closed_loop, run
from benchmarks.overload.meter import MAX_FOREIGN, Meter, Usage
from benchmarks.overload.pause import HOLD_SECONDS
from benchmarks.overload.protections import NATIVE, Machine, Serving, serving
from benchmarks.overload.theory import service_time
from benchmarks.overload.workloads import Interface, Workload
from benchmarks.process import ServerError

# As many connections as an overload keeps: with a few of them a refusal costs a third less, since
# all of it stays in the caches of the CPU.
REFUSED_CLIENTS: dict[Interface, int] = {"asgi": 1000, "wsgi": 32}


@dataclass(frozen=True, slots=True)
class Base:
    """One kind of work on one unprotected server; times in seconds.

    Attributes:
        capacity: 200s a second in a closed loop.
        cpu_share: of the server meanwhile.
        service: CPU time a request, s.
        unloaded: median latency with one client.
        refusal: CPU time a refusal, r.
        foreign_cpu: share of the server's CPU that others used meanwhile.
    """

    server: str
    workload: str
    loop: str
    connection: str
    capacity: float
    cpu_share: float
    service: float
    unloaded: float
    refusal: float
    foreign_cpu: float


def measure_base(
    machine: Machine,
    server: str,
    workload: Workload,
    loop: str,
    connection: str,
    *,
    refusal: float,
    seconds: float,
    attempts: int = 2,
) -> Base:
    """Measure with one client, then with enough of them.

    If others used the server's CPU meanwhile it is measured again, up to `attempts` times in all,
    and the most that was reached is the capacity.

    Raises:
        ServerError: nothing was served.
    """
    reuse = connection == "kept"
    with serving(machine, workload.interface, loop, server=server) as running:
        target = running.target(workload.path)
        alone = run(closed_loop(target, connections=1, seconds=seconds / 3, warm_up=0.3))
        tries: list[tuple[Capacity, Usage]] = []
        while len(tries) < attempts and (not tries or tries[-1][1].foreign > MAX_FOREIGN):
            load = _metered(machine, running, target, workload.clients, seconds, reuse=reuse)
            tries.append(run(load))
    capacity, usage = max(tries, key=lambda measured: measured[0].rate)
    if not capacity.rate:
        raise ServerError(f"{server} served no {workload.name} at all")
    return Base(
        server=server,
        workload=workload.name,
        loop=loop,
        connection=connection,
        capacity=capacity.rate,
        cpu_share=usage.server,
        service=service_time(capacity.rate, usage.server),
        unloaded=alone.p50,
        refusal=refusal,
        foreign_cpu=usage.foreign,
    )


def measure_refusal(
    machine: Machine, interface: Interface, loop: str, connection: str, *, seconds: float
) -> float:
    """CPU seconds a refusal: one slot, which is taken, and clients that all ask for more.

    Raises:
        ServerError: not everything was refused.
    """
    server = NATIVE[interface]
    seconds = min(seconds, HOLD_SECONDS / 2)
    with contextlib.ExitStack() as stack:
        running = stack.enter_context(
            serving(machine, interface, loop, server=server, wrap="limit:1")
        )
        stack.enter_context(_holding(running.target("/hold")))
        target = running.target("/hello")
        reuse = connection == "kept"
        refused, usage = run(
            _metered(machine, running, target, REFUSED_CLIENTS[interface], seconds, reuse=reuse)
        )
    if refused.rate or not refused.others:
        raise ServerError(f"{server} was to refuse everything, but served {refused.rate:.0f}/s")
    return usage.server * seconds / refused.others


async def _metered(
    machine: Machine,
    running: Serving,
    target: Target,
    clients: int,
    seconds: float,
    *,
    reuse: bool,
) -> tuple[Capacity, Usage]:
    warm_up = min(1.0, seconds / 2)
    meter = Meter(machine, running)
    load = asyncio.ensure_future(
        closed_loop(target, connections=clients, seconds=seconds, warm_up=warm_up, reuse=reuse)
    )
    await asyncio.sleep(warm_up)
    meter.start()
    await asyncio.sleep(seconds)
    usage = meter.stop()
    return await load, usage


@contextlib.contextmanager
def _holding(target: Target) -> Iterator[None]:
    with socket.create_connection((target.host, target.port), timeout=5.0) as client:
        client.sendall(target.request(keep_alive=True))
        # It has no answer to wait for before it ends: give it the time to arrive.
        with contextlib.suppress(TimeoutError):
            client.settimeout(0.3)
            raise ServerError(f"the slot was not taken: {client.recv(100)!r}")
        yield
