"""A fixed limit on real servers, under three times the load that they can serve."""

from __future__ import annotations

import asyncio
import time
from functools import partial

import httpx2
import pytest

from benchmarks.load import Load, Target, open_loop, run
from tests.servers import UVICORN, gunicorn, uvicorn
from tests.servers_overload.apps import LIMIT

APPS = "tests.servers_overload.apps"
DJANGO = "tests.servers_overload.django_app"
PATIENCE = 30.0
"""Seconds until a client gives up: longer than any backlog here takes to be worked off."""

CONCURRENT = {
    **{name: partial(launch, f"{APPS}:asgi") for name, launch in UVICORN.items()},
    "gunicorn-asgi": partial(gunicorn, f"{APPS}:asgi", worker="asgi"),
    "gunicorn-gthread": partial(gunicorn, f"{APPS}:wsgi", worker="gthread", threads=2 * LIMIT),
}


DJANGO_IN = {
    "gunicorn-gthread": (partial(gunicorn, f"{DJANGO}:wsgi", threads=2 * LIMIT), "/"),
    "uvicorn-threads": (partial(uvicorn, f"{DJANGO}:asgi"), "/"),
    "uvicorn-coroutines": (partial(uvicorn, f"{DJANGO}:asgi"), "/async"),
}


def overload(server, *, rate, seconds, path="/"):
    """Ask for the page at a rate while probing on new connections; return both kinds of record."""

    async def both():
        page = Load.steady(rate, seconds, patience=PATIENCE)
        probe = Load.steady(10, seconds, patience=PATIENCE, reuse=False)
        return await asyncio.gather(
            open_loop(Target.parse(f"{server.url}{path}"), page),
            open_loop(Target.parse(f"{server.url}/livez"), probe),
        )

    return run(both())


def settles(server):
    """Wait until nothing is in flight and the page is served again; return whether that came."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        idle = httpx2.get(f"{server.url}/inflight").text == "0"
        if idle and httpx2.get(f"{server.url}/").status_code == 200:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("launch", CONCURRENT.values(), ids=CONCURRENT)
def test_three_times_too_much(launch, serve):
    """Served at capacity, the rest refused; probes answer, nobody hangs, every slot comes back."""
    server = serve(launch(env={"PAGE_SECONDS": "0.05"}))
    capacity, seconds = LIMIT / 0.05, 3.0
    pages, probes = overload(server, rate=3 * capacity, seconds=seconds)
    outcomes = [record.outcome for record in pages]
    assert set(outcomes) == {200, 503}
    assert outcomes.count(200) > capacity * seconds / 3
    assert outcomes.count(503) > len(outcomes) / 3
    assert {record.outcome for record in probes} == {200}
    assert settles(server)


@pytest.mark.parametrize(("launch", "path"), DJANGO_IN.values(), ids=DJANGO_IN)
def test_three_times_too_much_for_django(launch, path, serve):
    """The same from within MIDDLEWARE, in each of Django's modes."""
    server = serve(launch(env={"PAGE_SECONDS": "0.1"}))
    capacity, seconds = LIMIT / 0.1, 3.0
    pages, probes = overload(server, rate=3 * capacity, seconds=seconds, path=path)
    outcomes = [record.outcome for record in pages]
    assert set(outcomes) == {200, 503}
    assert outcomes.count(200) > capacity * seconds / 3
    assert {record.outcome for record in probes} == {200}
    assert settles(server)


def test_three_times_too_much_for_one_thread(serve):
    """Gunicorn's sync worker shows us one request at a time, so that a fixed limit never acts.

    The others wait in the kernel; what has waited too long there is refused by the adaptive law.
    """
    server = serve(gunicorn(f"{APPS}:wsgi", worker="sync", env={"PAGE_SECONDS": "0.02"}))
    capacity, seconds = 1 / 0.02, 3.0
    pages, probes = overload(server, rate=3 * capacity, seconds=seconds)
    outcomes = [record.outcome for record in pages]
    assert set(outcomes) <= {200, 503}
    assert outcomes.count(200) > capacity * seconds / 3
    assert {record.outcome for record in probes} == {200}
    assert settles(server)
