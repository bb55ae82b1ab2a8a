"""What a request and a refusal cost, as ratios to an empty pass-through ASGI middleware.

    python -m benchmarks.fastpath [--json]

Every row is measured in the same process, in turn, on a running asyncio loop: the CPU time of one
request more through the app under test than through the bare app, divided by the same for an empty
pass-through middleware. Goals: one fixed gate at most 4, one adaptive gate at most 8, the whole of
``protect()`` at most 13; a refusal at most 1.2 times a hand-written raw 503.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from typing import Any

from starlette.middleware.base import BaseHTTPMiddleware

from resilience_mw import Backpressure, Config, RolloutRule, protect
from resilience_mw.asgi import (
    BackpressureMiddleware,
    ConcurrencyLimitMiddleware,
    DeadlineMiddleware,
    Guard,
    HealthMiddleware,
    RolloutMiddleware,
)
from resilience_mw.core import Gate

START = {"type": "http.response.start", "status": 200, "headers": []}
BODY = {"type": "http.response.body", "body": b"ok"}
BUSY_HEADERS = [
    (b"retry-after", b"1"),
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"content-length", b"12"),
]


async def bare(scope: Any, receive: Any, send: Any) -> None:
    """The app: two messages."""
    await send(START)
    await send(BODY)


async def raw_503(scope: Any, receive: Any, send: Any) -> None:
    """A refusal as a careful person writes it by hand."""
    headers = list(BUSY_HEADERS)
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": b"Service Busy"})


class PassThrough:
    """An empty middleware: the unit of this benchmark."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.app(scope, receive, send)


class Empty(BaseHTTPMiddleware):
    """Starlette's base class, doing nothing."""

    async def dispatch(self, request: Any, call_next: Any) -> Any:
        return await call_next(request)


def full() -> Guard:
    """A guard whose only slot is taken."""
    gate = Gate(1)
    gate.inflight = 1
    return Guard(bare, gate)


def rollout(rule: RolloutRule, *, guard: bool = True) -> RolloutMiddleware:
    """A roll-out with one rule."""
    return RolloutMiddleware(bare, new=bare, rules=[rule], guard=guard)


CASES = {
    "pass-through": PassThrough(bare),
    "fixed gate": ConcurrencyLimitMiddleware(bare, max_concurrent_requests=1000),
    "health": HealthMiddleware(bare),
    "deadline": DeadlineMiddleware(bare),
    "adaptive gate": BackpressureMiddleware(bare),
    "adaptive gate, aimd": BackpressureMiddleware(bare, law="aimd"),
    "protect()": protect(bare),
    "protect(), aimd": protect(bare, Config(backpressure=Backpressure(law="aimd"))),
    "four middlewares": HealthMiddleware(
        DeadlineMiddleware(
            ConcurrencyLimitMiddleware(BackpressureMiddleware(bare), max_concurrent_requests=1000)
        )
    ),
    "rollout, another path": rollout(RolloutRule("elsewhere", path="/elsewhere", percent=50)),
    "rollout, one rule": rollout(RolloutRule("items", path="/items/42", percent=100)),
    "rollout, no guard": rollout(RolloutRule("items", path="/items/42", percent=100), guard=False),
    "rollout by user": rollout(
        RolloutRule("items", path="/items/42", percent=50, by="user", header="host")
    ),
    "BaseHTTPMiddleware": Empty(bare),
}
REFUSALS = {"hand-written 503": raw_503, "refusal": full()}


async def measure(app: Any, requests: int) -> float:
    """Return the CPU seconds that one request through ``app`` takes."""
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "path": "/items/42",
        "root_path": "",
        "headers": [(b"host", b"example.org"), (b"accept", b"*/*")],
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        pass

    started = time.process_time()
    for _ in range(requests):
        await app(scope, receive, send)
    return (time.process_time() - started) / requests


async def run(rounds: int, requests: int) -> dict[str, dict[str, float]]:
    """Measure every case in turn, ``rounds`` times, and return nanoseconds and ratios."""
    samples: dict[str, list[float]] = {name: [] for name in ("bare", *CASES, *REFUSALS)}
    added: dict[str, list[float]] = {name: [] for name in CASES}
    apps = {"bare": bare, **CASES, **REFUSALS}
    for _ in range(rounds + 1):
        for name, app in apps.items():
            count = requests // 20 if name == "BaseHTTPMiddleware" else requests
            samples[name].append(await measure(app, count))
    for name in CASES:
        added[name] = [a - b for a, b in zip(samples[name][1:], samples["bare"][1:], strict=True)]
    unit = statistics.median(added["pass-through"])
    rows = {
        name: {
            "added_ns": statistics.median(values) * 1e9,
            "ratio": statistics.median(values) / unit,
        }
        for name, values in added.items()
    }
    by_hand = statistics.median(samples["hand-written 503"][1:])
    for name in REFUSALS:
        total = statistics.median(samples[name][1:])
        rows[name] = {"added_ns": total * 1e9, "ratio": total / by_hand}
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--requests", type=int, default=20_000, help="per case and round")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = asyncio.run(run(arguments.rounds, arguments.requests))
    if arguments.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"{'case':24} {'added ns':>10} {'ratio':>8}")
    for name, row in rows.items():
        print(f"{name:24} {row['added_ns']:>10.0f} {row['ratio']:>8.2f}")
    print("\nratio: to the pass-through middleware; of refusals: to the hand-written 503 (total)")


if __name__ == "__main__":
    main()
