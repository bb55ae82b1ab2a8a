"""Server CPU of a refusal: in the runner's protocol, in the middleware, and written by hand.

    python -m benchmarks.protocol_refusal [--seconds 3] [--rounds 3] [--json]

Three servers of each parser and loop are kept busy in turn by clients that keep their connections,
and the CPU time of the server process is divided by its answers: what the kernel does for them
included. Goal: at most half of what the middleware takes.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, NamedTuple

from benchmarks.load import Target, closed_loop, run
from benchmarks.pinning import pinned
from benchmarks.servers import Server, runner, uvicorn
from resilience_mw import Config, Limit, protect
from resilience_mw.core import Gate

CLIENTS = 16

MICROSECONDS = 1e6


async def page(scope: Any, receive: Any, send: Any) -> None:
    """The app, which no request here reaches."""
    raise AssertionError(scope)


async def by_hand(scope: Any, receive: Any, send: Any) -> None:
    """A refusal as a careful person writes it."""
    headers = [
        (b"retry-after", b"1"),
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", b"12"),
    ]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": b"Service Busy"})


def _full() -> Any:
    """Everything that `protect()` puts around an app, with the only slot taken."""
    guard = protect(page, Config(limit=Limit(max_concurrent_requests=1)))
    for policy in guard.policies:
        if type(policy) is Gate:
            policy.inflight = 1
    return guard


full = _full()


class Case(NamedTuple):
    """One way to refuse."""

    name: str
    launch: Callable[..., Server]
    app: str


CASES = (
    Case("protocol", runner, "full"),
    Case("middleware", uvicorn, "full"),
    Case("by hand", uvicorn, "by_hand"),
)


async def cost(server: Server, seconds: float) -> float:
    """Return the CPU seconds that one answer of the server takes."""
    target = Target.parse(f"{server.url}/items/42")
    before = server.cpu_seconds()
    got = await closed_loop(target, connections=CLIENTS, seconds=seconds, warm_up=0.0)
    if got.rate or not got.others:
        raise RuntimeError(f"{server}: nothing but refusals was expected, got {got}")
    return (server.cpu_seconds() - before) / got.others


def measure(http: str, loop: str, *, seconds: float, rounds: int) -> dict[str, float]:
    """Return the median CPU seconds of a refusal, by case."""
    with pinned() as cpu, ExitStack() as stack:
        servers = {
            case.name: stack.enter_context(
                case.launch(
                    f"benchmarks.protocol_refusal:{case.app}", http=http, loop=loop, cpu=cpu
                )
            )
            for case in CASES
        }
        samples: dict[str, list[float]] = {name: [] for name in servers}
        for _ in range(rounds + 1):
            for name, server in servers.items():
                samples[name].append(run(cost(server, seconds)))
    return {name: statistics.median(values[1:]) for name, values in samples.items()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=3.0, help="of load, a case and round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = {
        f"{http}, {loop}": measure(http, loop, seconds=arguments.seconds, rounds=arguments.rounds)
        for http in ("httptools", "h11")
        for loop in ("uvloop", "asyncio")
    }
    if arguments.json:
        print(json.dumps(rows, indent=2))
        return
    names = [case.name for case in CASES]
    print(f"{'CPU us a refusal':20}" + "".join(f"{name:>12}" for name in names) + f"{'ratio':>8}")
    for name, row in rows.items():
        cells = "".join(f"{row[case] * MICROSECONDS:>12.1f}" for case in names)
        print(f"{name:20}{cells}{row['protocol'] / row['middleware']:>8.2f}")
    print("\nratio: protocol to middleware, in the same run")


if __name__ == "__main__":
    main()
