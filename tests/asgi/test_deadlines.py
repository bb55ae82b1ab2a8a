"""Deadlines on running requests: who is answered when, and with what."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

import pytest

from resilience_mw import remaining
from resilience_mw.asgi import Guard
from resilience_mw.asgi.pulse import PERIOD
from resilience_mw.core import DeadlinePolicy

from .harness import Exchange, Holding, call, hello, run, until
from .late import SOON, assert_late, guarded


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_request_without_a_response_is_answered_at_its_deadline(loop):
    """504, not before the deadline; the app's task is cancelled and its slot comes back."""

    async def main():
        cancelled = []

        async def app(scope, receive, send):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(time.monotonic())
                raise

        guard, deadline, gate = guarded(app)
        began = time.monotonic()
        exchange = await call(guard)
        assert_late(exchange)
        assert cancelled[0] - began >= SOON
        assert (deadline.expired, gate.inflight, gate.admitted) == (1, 0, 1)
        assert guard.snapshot().refused == {"deadline": 1}
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        guard.close()

    run(main(), loop)


def test_a_request_in_time_is_left_alone():
    """Nothing is counted, and nothing is left behind."""

    async def main():
        guard, deadline, _ = guarded(hello, 20.0)
        for _ in range(3):
            assert (await call(guard)).text == b"ok"
        assert (deadline.expired, guard._running) == (0, set())
        guard.close()

    run(main())


def test_without_a_timeout_there_is_no_deadline():
    """Only the header may set one then."""

    async def main():
        left: list[Any] = []

        async def app(scope, receive, send):
            left.append(remaining())
            await hello(scope, receive, send)

        guard, _, _ = guarded(app, None, header="x-timeout")
        await call(guard)
        await call(guard, headers=[(b"x-timeout", b"7")])
        assert left[0] is None
        assert 0.0 < left[1] <= 7.0
        guard.close()

    run(main())


def test_a_header_shortens_the_deadline_of_one_request():
    """The others keep theirs."""

    async def main():
        holding = Holding()
        guard, deadline, _ = guarded(holding, 20.0, header="x-timeout")
        assert_late(await call(guard, headers=[(b"x-timeout", b"30ms")]))
        holding.go.set()
        assert (await call(guard)).status == 200
        assert deadline.expired == 1
        guard.close()

    run(main())


def test_a_shorter_deadline_that_comes_later_is_met_first():
    """One tick watches all, in whatever order they came."""

    async def main():
        guard = Guard(Holding(), DeadlinePolicy(20.0, receive_timeout=0.0, header="x-timeout"))
        ended = []

        async def send(milliseconds):
            timeout = f"{milliseconds}ms".encode()
            assert_late(await call(guard, headers=[(b"x-timeout", timeout)]))
            ended.append(milliseconds)

        await asyncio.gather(*(send(ms) for ms in (400, 300, 200, 100, 1)))
        assert ended == [1, 100, 200, 300, 400]
        guard.close()

    run(main())


def test_a_response_that_has_started_is_never_cut():
    """However long its body takes."""

    async def main():
        async def app(scope, receive, send):
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await asyncio.sleep(SOON * 3)
            await send({"type": "http.response.body", "body": b"late but whole"})

        guard, deadline, _ = guarded(app)
        exchange = await call(guard)
        assert (exchange.status, exchange.text) == (200, b"late but whole")
        assert deadline.expired == 0
        guard.close()

    run(main())


def test_what_an_app_sends_after_its_deadline_is_muted():
    """It was answered for; its own response comes too late, and its end is no error."""

    async def main():
        async def app(scope, receive, send):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await hello(scope, receive, send)

        guard, _, gate = guarded(app)
        assert_late(await call(guard))
        assert gate.inflight == 0
        guard.close()

    run(main())


def test_an_app_that_fails_after_its_deadline_is_logged(caplog):
    """The server has no use for the error; the developer may."""
    caplog.set_level(logging.DEBUG, "resilience_mw")

    async def main():
        async def app(scope, receive, send):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise ValueError("confused") from None

        guard, _, _ = guarded(app)
        assert_late(await call(guard))
        guard.close()

    run(main())
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert caplog.records[0].exc_info is not None


def test_an_app_that_fails_in_time_fails_as_without_us():
    """The server sees the error."""

    async def main():
        async def app(scope, receive, send):
            raise ValueError("as always")

        guard, _, gate = guarded(app)
        with pytest.raises(ValueError, match="as always"):
            await call(guard)
        assert gate.inflight == 0
        guard.close()

    run(main())


def test_the_call_does_not_return_before_the_late_answer_is_out():
    """Servers take the return of the app as the end of the request."""

    async def main():
        guard, _, gate = guarded(Holding())
        exchange = Exchange(hold_sends=True)
        task = exchange.start(guard)
        await until(lambda: guard.snapshot().refused)
        await asyncio.sleep(PERIOD * 3)
        assert not task.done()
        exchange.readable.set()
        await task
        assert_late(exchange)
        assert gate.inflight == 0
        guard.close()

    run(main())


def test_a_late_answer_that_cannot_be_sent_is_no_error(caplog):
    """The client has left; the app ends as it would have."""
    caplog.set_level(logging.DEBUG, "resilience_mw")

    async def main():
        guard, deadline, gate = guarded(Holding())
        exchange = Exchange()

        async def send(message):
            raise OSError("closed")

        await guard(exchange.scope, exchange.receive, send)
        assert (deadline.expired, gate.inflight) == (1, 0)
        guard.close()

    run(main())
    assert [record.levelname for record in caplog.records] == ["DEBUG"]
