"""The balancer's view of a chain of three processes is right, whatever happens to the last."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest
import trustme

from tests.health.chain.stand import INTERVAL, TIMEOUT, Chain
from tests.servers import gunicorn, uvicorn

pytestmark = pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")

TIERS = {
    "uvicorn": partial(uvicorn, "tests.health.chain.tier:asgi"),
    "gthread": partial(gunicorn, "tests.health.chain.tier:wsgi", worker="gthread"),
}

AT_MOST = INTERVAL + TIMEOUT
"""Seconds until the view turns, by design; tests add what a shared machine may add."""

SLACK = 4.0


@pytest.fixture(scope="module", params=list(TIERS.values()), ids=list(TIERS))
def chain(request) -> Iterator[Chain]:
    running = Chain(request.param)
    yield running
    running.close()


@pytest.fixture
def well(chain) -> Iterator[Chain]:
    """The chain, while all is well; and again afterwards."""
    chain.turned(200)
    yield chain
    chain.mode("ok")
    chain.turned(200)


def _stays(chain: Chain, status: int) -> None:
    """Never hung, never wrong, and never a reason to kill anybody."""
    until = time.monotonic() + AT_MOST
    while time.monotonic() < until:
        assert chain.get() == status
        assert chain.get("/livez") == 200
        assert chain.get("/readyz") == (200 if status == 200 else 503)
        assert chain.get("/page") == 200
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("mode", "status"),
    [
        ("slow", 503),
        ("trickle", 503),
        ("error", 500),
        ("half-closed", 503),
        ("cut-short", 503),
        ("reset", 503),
    ],
)
def test_a_back_end_that_misbehaves(well, mode, status):
    """Its own status, where it has one; and 200 again as soon as it is well."""
    well.mode(mode)
    assert well.turned(status) < AT_MOST + SLACK
    _stays(well, status)
    well.mode("ok")
    assert well.turned(200) < AT_MOST + SLACK


def test_a_back_end_that_is_down(well):
    """Its port refuses connections; it comes back on the same one."""
    well.back_end.stop()
    try:
        assert well.turned(503) < AT_MOST + SLACK
        _stays(well, 503)
    finally:
        well.start_back_end()
    assert well.turned(200) < AT_MOST + SLACK


def test_a_back_end_that_is_stopped(well):
    """Its kernel still accepts; nobody answers."""
    well.back_end.signal(signal.SIGSTOP)
    try:
        assert well.turned(503) < AT_MOST + SLACK
        _stays(well, 503)
    finally:
        well.back_end.signal(signal.SIGCONT)
    assert well.turned(200) < AT_MOST + SLACK


def test_names_that_are_not_found(well):
    """For a while."""
    flag = well.folder / "no-dns"
    flag.touch()
    try:
        assert well.turned(503) < AT_MOST + SLACK
        _stays(well, 503)
    finally:
        flag.unlink()
    assert well.turned(200) < AT_MOST + SLACK


@pytest.fixture
def build() -> Iterator[Callable[..., Chain]]:
    chains: list[Chain] = []

    def start(**options: object) -> Chain:
        chains.append(Chain(TIERS["uvicorn"], **options))  # type: ignore[arg-type]
        return chains[-1]

    yield start
    for chain in chains:
        chain.close()


def test_certificates(build):
    """Of another name, of another authority, none at all; and a right one again."""
    chain = build(secure=True)
    chain.turned(200)
    wrong = [
        lambda: chain.certify(chain.authority, "other.example"),
        lambda: chain.certify(trustme.CA(), "localhost"),
        lambda: (chain.folder / "server.pem").unlink(),
    ]
    for damage in wrong:
        damage()
        assert chain.turned(503) < AT_MOST + SLACK
        _stays(chain, 503)
        chain.certify(chain.authority, "localhost")
        assert chain.turned(200) < AT_MOST + SLACK


def test_the_status_of_failure_can_be_set(build):
    """404 is what the original answered; the next tier's own status is passed on all the same."""
    chain = build(failure=404)
    chain.turned(200)
    chain.mode("error")
    chain.turned(500)
    chain.back_end.stop()
    assert chain.turned(404) < AT_MOST + SLACK
    _stays(chain, 404)


def test_a_chain_whose_back_end_comes_last(build, monkeypatch):
    """Not ready until it has answered; then ready within an interval."""
    chain = build()
    chain.back_end.stop()
    chain.turned(503)
    assert chain.get("/startupz") == 200
    chain.start_back_end()
    assert chain.turned(200) < AT_MOST + SLACK
    assert chain.get("/readyz") == 200
