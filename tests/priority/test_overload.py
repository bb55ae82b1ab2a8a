"""Real servers at three times of what they can serve, by requests that name their class."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from benchmarks.load import Load, Record, Target, open_loop, run
from tests.servers import Server, gunicorn, uvicorn

SECONDS = 6.0
SETTLED = 2.0

CAPACITY = {"uvicorn": 1 / 0.015, "gunicorn": 8 / 0.12}
"""Requests a second, whatever the machine is busy with: the handlers sleep."""
RATES = {"critical": 12.0, "normal": 18.0, "sheddable": 170.0}


async def load(server: Server) -> dict[str, list[Record]]:
    """Send all classes side by side."""
    target = Target.parse(f"{server.url}/block")
    runs = {
        name: open_loop(
            replace(target, headers={"X-Priority": name}),
            Load.steady(rate, SECONDS, spacing="poisson", seed=number),
        )
        for number, (name, rate) in enumerate(RATES.items())
    }
    return dict(zip(runs, await asyncio.gather(*runs.values()), strict=True))


async def load_all(servers: dict[str, Server]) -> dict[str, dict[str, list[Record]]]:
    """Load several servers at the same time: they share the CPU, which none of them needs."""
    results = await asyncio.gather(*map(load, servers.values()))
    return dict(zip(servers, results, strict=True))


def admitted(records: list[Record]) -> float:
    """Return the share of the requests that were served once the load was steady."""
    steady = [record for record in records if record.intended >= SETTLED]
    return sum(record.outcome == 200 for record in steady) / len(steady)


def goodput(records: dict[str, list[Record]]) -> float:
    """Return the answers in time a second, of all classes."""
    good = [
        record
        for each in records.values()
        for record in each
        if record.intended >= SETTLED and record.outcome == 200 and record.latency <= 0.5
    ]
    return len(good) / (SECONDS - SETTLED)


def snapshot(server: Server) -> dict[str, Any]:
    """Return what the server says about itself."""
    with urllib.request.urlopen(f"{server.url}/snapshot", timeout=10) as answer:
        state: dict[str, Any] = json.load(answer)
        return state


def test_the_least_important_are_refused(serve: Callable[[Server], Server]):
    """On Uvicorn and on Gunicorn's threads: critical and normal requests fit and are served, and
    as many are served in all as without ranks."""
    starts: dict[str, Callable[[], Server]] = {
        "uvicorn": lambda: uvicorn("tests.priority.asgi:app", env={"CONFIG": "ranked"}),
        "plain": lambda: uvicorn("tests.priority.asgi:app", env={"CONFIG": "plain"}),
        "gunicorn": lambda: gunicorn("tests.priority.wsgi:app", env={"CONFIG": "ranked"}),
    }
    with ThreadPoolExecutor() as pool:
        started = dict(zip(starts, pool.map(lambda start: start(), starts.values()), strict=True))
    servers = {name: serve(server) for name, server in started.items()}
    results = run(load_all(servers))
    for name in ("uvicorn", "gunicorn"):
        shares = {each: admitted(records) for each, records in results[name].items()}
        assert shares["critical"] >= 0.97, (name, shares)
        assert shares["normal"] >= 0.9, (name, shares)
        assert shares["sheddable"] <= 0.3, (name, shares)
        assert goodput(results[name]) >= 0.8 * CAPACITY[name]
        assert snapshot(servers[name])["refused"]["saturated"] >= 150
    assert goodput(results["uvicorn"]) >= 0.9 * goodput(results["plain"])
    assert admitted(results["plain"]["critical"]) <= 0.7
