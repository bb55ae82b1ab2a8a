"""How long probes take while a server is as busy as can be, in band and on a port of their own.

    python -m benchmarks.out_of_band                     # every case, ten seconds each
    python -m benchmarks.out_of_band --case "8 threads" --seconds 5

In each case `/livez` and `/readyz` are asked in turn, twenty times a second in each band, on a new
connection each time, as an orchestrator does; a probe without an answer after 2 s has failed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from benchmarks.apps.work import cpu
from benchmarks.load.summary import human, percentile
from benchmarks.process import HOST, Server, free_port
from benchmarks.servers import gunicorn, uvicorn
from benchmarks.talk import get
from resilience_mw import Backpressure, Config, protect

PATIENCE = 2.0
PERIOD = 0.05
CAPACITY = 100.0
"""Requests of 10 ms that one worker can bear in a second."""


async def sleep_in_loop(request: Request) -> PlainTextResponse:
    """Block the event loop without using the CPU, as a forgotten synchronous call does."""
    time.sleep(float(request.query_params["seconds"]))  # noqa: ASYNC251 - that is the point
    return PlainTextResponse("done")


async def compute_in_loop(request: Request) -> PlainTextResponse:
    """Block it and the interpreter."""
    _compute(float(request.query_params["seconds"]))
    return PlainTextResponse("done")


def take_token(request: Request) -> PlainTextResponse:
    """Keep one of the thread pool's 40 tokens."""
    time.sleep(float(request.query_params["seconds"]))
    return PlainTextResponse("done")


async def work(request: Request) -> PlainTextResponse:
    """10 ms of CPU."""
    cpu(10)
    return PlainTextResponse("done")


def take_thread(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Keep one of the server's threads, asleep or computing."""
    kind, _, seconds = environ["QUERY_STRING"].partition("=")
    if kind == "compute":
        _compute(float(seconds))
    else:
        time.sleep(float(seconds or 0))
    start_response("200 OK", [("Content-Length", "0")])
    return [b""]


def _compute(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        cpu(1)


asgi = protect(
    Starlette(
        routes=[
            Route("/sleep", sleep_in_loop),
            Route("/compute", compute_in_loop),
            Route("/token", take_token),
            Route("/work", work),
        ]
    )
)
# The adaptive limit would keep a thread free.
alone = Config(backpressure=Backpressure(enabled=False))
wsgi = protect(take_thread, alone, interface="wsgi")


class Case(NamedTuple):
    """One way of being busy.

    Attributes:
        launch: the server.
        path: what keeps it busy, with the seconds to fill in; empty = nothing.
        clients: how many ask for that at once; 0 = an open loop of five times the capacity.
    """

    launch: Callable[..., Server]
    path: str = ""
    clients: int = 1


CASES: dict[str, Case] = {
    "idle": Case(uvicorn),
    "loop blocked, asleep": Case(uvicorn, "/sleep?seconds={}"),
    "loop blocked, computing": Case(uvicorn, "/compute?seconds={}"),
    "40 tokens taken": Case(uvicorn, "/token?seconds={}", 60),
    "8 threads taken, asleep": Case(gunicorn, "/?sleep={}", 8),
    "8 threads taken, computing": Case(gunicorn, "/?compute={}", 8),
    "overload 5x": Case(uvicorn, "/work", 0),
}


class At(NamedTuple):
    """Where to ask."""

    host: str
    port: int


@contextlib.contextmanager
def busy(case: Case, server: Server, seconds: float) -> Iterator[None]:
    """Keep the server busy meanwhile."""
    if case.path and not case.clients:
        rate, url = str(5 * CAPACITY), server.url + case.path
        command = [sys.executable, "-m", "benchmarks.load", url, "--rate", rate]
        with subprocess.Popen(
            [*command, "--seconds", str(seconds + 1)], stdout=subprocess.DEVNULL
        ) as load:
            yield
            load.wait()
        return
    path = case.path.format(seconds + 0.5)
    clients = [
        threading.Thread(target=get, args=(server, path, 10 * seconds + 60), daemon=True)
        for _ in range(case.clients if case.path else 0)
    ]
    for client in clients:
        client.start()
    yield
    for client in clients:
        client.join()


class Seen(NamedTuple):
    """What probes saw: seconds each, and how many were answered 200."""

    latencies: list[float]
    good: int

    def __str__(self) -> str:
        ordered = sorted(self.latencies)
        times = [percentile(ordered, 50), percentile(ordered, 99), ordered[-1]]
        return " | ".join([f"{self.good} of {len(ordered)}", *map(human, times)])


async def probe(where: At, seconds: float) -> Seen:
    """Ask at fixed times, however long the answers take."""
    begun = time.monotonic()
    tasks = []
    for number in range(int(seconds / PERIOD)):
        await asyncio.sleep(max(0.0, begun + number * PERIOD - time.monotonic()))
        path = "/livez" if number % 2 else "/readyz"
        tasks.append(asyncio.ensure_future(_ask(where, path, begun + number * PERIOD)))
    answers = await asyncio.gather(*tasks)
    return Seen([took for took, _ in answers], sum(good for _, good in answers))


async def _ask(where: At, path: str, intended: float) -> tuple[float, bool]:
    try:
        async with asyncio.timeout(PATIENCE):
            reader, writer = await asyncio.open_connection(*where)
            with contextlib.closing(writer):
                request = f"GET {path} HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n"
                writer.write(request.encode())
                good = (await reader.readline()).startswith(b"HTTP/1.1 200 ")
    except (OSError, TimeoutError):
        good = False
    return time.monotonic() - intended, good


async def both(server: Server, apart: At, seconds: float) -> tuple[Seen, Seen]:
    """Probe in both bands at once."""
    inside = At(server.host, server.port)
    return await asyncio.gather(probe(apart, seconds), probe(inside, seconds))


def measure(case: Case, seconds: float) -> tuple[Seen, Seen]:
    """Return what was seen out of band and in band."""
    apart = At(HOST, free_port())
    env = {"RESILIENCE_HEALTH_PORT": str(apart.port), "RESILIENCE_HEALTH_HOST": HOST}
    app = "wsgi" if case.launch is gunicorn else "asgi"
    with case.launch(f"{__spec__.name}:{app}", env=env) as server:
        time.sleep(0.5)
        with busy(case, server, seconds):
            time.sleep(0.3)
            return asyncio.run(both(server, apart, seconds))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--case", help="only those that contain this text")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each case (10)")
    arguments = parser.parse_args()
    print("| while | band | answered 200 | p50 | p99 | max |")
    print("|---|---|---|---|---|---|")
    for name, case in CASES.items():
        if arguments.case is None or arguments.case in name:
            apart, inside = measure(case, arguments.seconds)
            print(f"| {name} | own port | {apart} |")
            print(f"| | in band | {inside} |", flush=True)


if __name__ == "__main__":
    main()
