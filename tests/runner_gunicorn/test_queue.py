"""Who is connected, but not accepted, when a sync worker is told to stop."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest

from benchmarks.load import Load, Record, Target, open_loop, run
from benchmarks.process import Server
from benchmarks.talk import Answer, Client

from .launch import launch, together

GATELESS: dict[str, Any] = {"backpressure_enabled": "false"}
"""They wait for longer than our gate would let them."""


@pytest.fixture
def asking() -> Iterator[Callable[[Server, str], Client]]:
    """Open connections that ask for a path, and close them after the test."""
    with ExitStack() as opened:

        def ask(server: Server, path: str) -> Client:
            client = opened.enter_context(Client(server))
            client.ask(path)
            time.sleep(0.1)
            return client

        yield ask


def _answer(client: Client) -> Answer:
    answer = client.read()
    client.close()
    return answer


@pytest.mark.parametrize("workers", [1, 2])
def test_they_are_served(workers, asking, serve: Callable[[Server], Server]):
    """All workers are busy and a queue stands: closing the last listener would reset it."""
    server = serve(
        launch(
            "sync",
            workers=workers,
            **GATELESS,
            runner_drain_delay="0.2",
            runner_shutdown_timeout="8",
        )
    )
    busy = [asking(server, "/sleep/1") for _ in range(workers)]
    waiting = [asking(server, "/sleep/0.2") for _ in range(5)]
    server.signal(signal.SIGTERM)
    # Each closes when it has its answer, as balancers do; the worker waits for that.
    jobs = {str(number): partial(_answer, one) for number, one in enumerate((*busy, *waiting))}
    answers = together(**jobs)
    assert [answers[number].ok for number in jobs] == [True] * len(jobs)
    assert server.wait(10) == 0
    with pytest.raises(ConnectionRefusedError):
        Client(server)


def test_they_are_served_within_the_time_there_is(asking, serve: Callable[[Server], Server]):
    """Then the one in service is answered 503, and the process ends with code 1."""
    server = serve(
        launch("sync", **GATELESS, runner_drain_delay="0", runner_shutdown_timeout="1.5")
    )
    first, second, *rest = [asking(server, "/sleep/1") for _ in range(6)]
    told = time.monotonic()
    server.signal(signal.SIGTERM)
    assert _answer(first).ok
    answer = _answer(second)
    assert (answer.ok, answer.status) in ((True, 200), (False, 503))
    assert server.wait(10) == 1
    assert time.monotonic() - told < 6.0
    assert rest[-1].read().status == 0
    assert "still running after 1.5 s" in server.output()


def test_new_ones_are_refused_while_a_long_request_ends(asking, serve: Callable[[Server], Server]):
    """An empty queue is closed at once, so that nobody gets into it for nothing."""
    server = serve(
        launch("sync", **GATELESS, runner_drain_delay="0.2", runner_shutdown_timeout="8")
    )
    running = asking(server, "/sleep/3")
    server.signal(signal.SIGTERM)
    time.sleep(1.0)
    with pytest.raises(ConnectionRefusedError):
        Client(server)
    assert running.read().ok
    assert server.wait(10) == 0


def test_a_balancer_that_goes_on_sending_does_not_hold_up_the_end(
    serve: Callable[[Server], Server],
):
    """The workers leave together: those that are left over would never see an empty queue."""
    server = serve(
        launch(
            "sync",
            workers=4,
            **GATELESS,
            runner_drain_delay="0.3",
            runner_shutdown_timeout="8",
        )
    )
    target = Target.parse(f"{server.url}/sleep/0.05")
    load = Load.steady(50.0, 2.0, reuse=False, patience=10.0)

    async def stopped() -> list[Record]:
        sending = asyncio.ensure_future(open_loop(target, load))
        await asyncio.sleep(0.7)
        server.signal(signal.SIGTERM)
        return await sending

    records = run(stopped())
    assert server.wait(5.0) == 0
    assert {record.outcome for record in records} == {200, "refused"}
    assert max(record.latency for record in records) < 1.5
