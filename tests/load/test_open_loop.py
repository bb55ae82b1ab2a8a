from __future__ import annotations

import asyncio
import socket
from functools import partial

import pytest

from benchmarks.load import Load, Phase, Progress, Target, open_loop, run, summarize
from tests.load.peer import Peer


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def go(request):
    """Run a coroutine on each kind of loop."""
    return partial(run, uvloop=request.param)


async def drive(path, load, **options):
    async with Peer(**options) as peer:
        records = await open_loop(peer.target(path), load)
        await asyncio.sleep(0.05)
        return peer, records


def outcomes(records):
    return {record.outcome for record in records}


@pytest.mark.parametrize("path", ["/ok", "/chunked", "/close", "/until-close"])
@pytest.mark.parametrize("reuse", [True, False])
def test_every_request_arrives_once(go, path, reuse):
    """What was offered is what the server saw, and each record is a 200."""
    peer, records = go(drive(path, Load.steady(400, 0.1, reuse=reuse)))
    assert peer.requests == {path: 40}
    assert outcomes(records) == {200}
    assert [record.intended for record in records] == [i / 400 for i in range(40)]
    assert all(record.latency > 0 for record in records)
    assert not any(record.retried for record in records)


def test_idle_connections_are_taken_again(go):
    """A server that keeps up sees few connections; without reuse it sees one a request."""
    kept, _ = go(drive("/ok", Load.steady(250, 0.2)))
    assert kept.connections < 25
    fresh, _ = go(drive("/ok", Load.steady(250, 0.2, reuse=False)))
    assert fresh.connections == 50


def test_sources_are_spread(go):
    """Many new connections come from several loopback addresses, so that ports last."""
    peer, _ = go(drive("/ok", Load.steady(250, 0.2, reuse=False)))
    assert len(peer.sources) > 1


def test_refusals_carry_their_advice(go):
    """Status and Retry-After are recorded."""
    _, records = go(drive("/busy", Load.steady(100, 0.2)))
    assert outcomes(records) == {503}
    assert {record.retry_after for record in records} == {"7"}


def test_patience_ends_a_request(go):
    """A client that is not answered leaves: it closes, and is counted as unanswered."""
    peer, records = go(drive("/never", Load.steady(100, 0.3, patience=0.2)))
    assert outcomes(records) == {"timeout"}
    assert all(0.2 <= record.latency < 2.0 for record in records)
    assert peer.left == len(records) == 30
    assert summarize(records).unanswered == 30


def test_patience_ends_a_connection_that_never_opens(go):
    """A full accept queue answers nothing at all; that is a timeout too."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        records = go(open_loop(Target("127.0.0.1", port), Load.steady(100, 0.2, patience=0.3)))
    assert outcomes(records) == {"timeout"}


@pytest.mark.parametrize(("path", "outcome"), [("/cut", "reset"), ("/nonsense", "malformed")])
def test_broken_answers_have_names(go, path, outcome):
    """A body cut short and a peer that does not speak HTTP are told apart."""
    _, records = go(drive(path, Load.steady(50, 0.2)))
    assert outcomes(records) == {outcome}


def test_nobody_listening(go):
    """A closed port is `refused`."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        records = go(open_loop(Target("127.0.0.1", port), Load.steady(50, 0.2)))
    assert outcomes(records) == {"refused"}


def test_the_keep_alive_race_is_retried_once(go):
    """A request that meets a closing idle connection goes out again, on a new one.

    The peer answers one request and then closes without a word, so that each reused connection
    loses its request, and each new one too: the first failure is retried, the second counts.
    """
    _, records = go(drive("/ok", Load.steady(20, 0.2), closes_idle=True))
    assert [record.outcome for record in records] == [200, "reset", "reset", "reset"]
    assert [record.retried for record in records] == [False, True, False, False]


def test_unused_connections_are_closed_by_the_client(go):
    """Idle connections do not live long enough for a server's own timeout."""

    async def main():
        async with Peer() as peer:
            load = Load(phases=(Phase(50, 0.1), Phase(1, 1.5)), idle_timeout=0.2)
            await open_loop(peer.target("/ok"), load)
            return peer

    peer = go(main())
    assert peer.connections >= 2
    assert peer.left >= peer.connections - 1


def test_progress_is_told_and_adds_up(go):
    """Once a second the counts so far are reported."""
    seen: list[Progress] = []

    async def main():
        async with Peer() as peer:
            await open_loop(peer.target("/ok"), Load.steady(100, 1.2), seen.append)

    go(main())
    assert len(seen) == 1
    for now in seen:
        assert now.sent == now.ok + now.refused + now.unanswered + now.waiting
        assert now.ok > 0


def test_load_and_probe_run_side_by_side(go):
    """Two runs share a loop without sharing connections."""

    async def main():
        async with Peer() as peer:
            load = open_loop(peer.target("/never"), Load.steady(50, 0.2, patience=0.2))
            probe = open_loop(peer.target("/ok"), Load.steady(20, 0.2, reuse=False))
            return await asyncio.gather(load, probe)

    load, probe = go(main())
    assert outcomes(load) == {"timeout"}
    assert outcomes(probe) == {200}


@pytest.mark.parametrize(
    ("phases", "options", "message"),
    [
        ([(0, 1)], {}, "must be > 0"),
        ([(1, -1)], {}, "must be > 0"),
        ([(1, 1)], {"patience": 0}, "patience must be > 0"),
        ([(100_000, 100)], {}, "must stay below"),
        ([(1, 5_000)], {}, "must stay below"),
    ],
)
def test_a_load_is_bounded(phases, options, message):
    """Count, time and patience are checked before anything is sent."""
    with pytest.raises(ValueError, match=message):
        Load(phases=tuple(Phase(*phase) for phase in phases), **options)
