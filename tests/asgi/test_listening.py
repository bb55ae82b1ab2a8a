"""Apps that listen for a disconnect while they work, as Django does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from resilience_mw.asgi import Guard
from resilience_mw.core import DeadlinePolicy, Gate

from .harness import Exchange, call, run, until


class Listener:
    """An app that works in one task and listens in another."""

    def __init__(self, clean_up: Callable[[], Awaitable[None]] | None = None) -> None:
        self.noted: list[str] = []
        self._clean_up = clean_up

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        assert (await receive())["type"] == "http.request"
        work = asyncio.ensure_future(self._work())
        try:
            self.noted.append((await receive())["type"])
            self.noted.append((await receive())["type"])
        except asyncio.CancelledError:
            self.noted.append("cancelled")
            raise
        finally:
            work.cancel()
            await asyncio.wait([work])
            self.noted.append("work ended")

    async def _work(self) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            if self._clean_up is not None:
                await self._clean_up()


@pytest.mark.parametrize("receive_timeout", [0.0, 30.0])
def test_the_deadline_is_told_as_a_disconnect(receive_timeout: float) -> None:
    """The app ends its work itself; it is not cancelled, and asks again in vain."""

    async def main() -> None:
        app = Listener()
        guard = Guard(app, DeadlinePolicy(0.02, receive_timeout=receive_timeout), Gate(1))
        assert (await call(guard)).status == 504
        assert app.noted == ["http.disconnect", "http.disconnect", "work ended"]
        assert guard.snapshot().inflight == 0

    run(main())


def test_an_app_that_was_told_is_not_cancelled_while_it_cleans_up() -> None:
    """It keeps its slot until it has ended."""

    async def main() -> None:
        go_on = asyncio.Event()

        async def clean_up() -> None:
            await go_on.wait()

        app = Listener(clean_up)
        guard = Guard(app, DeadlinePolicy(0.02), Gate(1))
        request = Exchange()
        served = request.start(guard)
        await until(lambda: request.status == 504)
        await asyncio.sleep(0.1)
        assert guard.snapshot().inflight == 1
        go_on.set()
        await served
        assert app.noted == ["http.disconnect", "http.disconnect", "work ended"]
        assert guard.snapshot().inflight == 0

    run(main())


def test_a_real_disconnect_passes() -> None:
    """Before the deadline, what the server says is what the app hears."""

    async def main() -> None:
        app = Listener()
        guard = Guard(app, DeadlinePolicy(20.0), Gate(1))
        request = Exchange()
        request.gone.set()
        await request.through(guard)
        assert request.sent == []
        assert app.noted == ["http.disconnect", "http.disconnect", "work ended"]

    run(main())


def test_somebody_elses_cancellation_passes() -> None:
    """A server that cancels the request, after the deadline or before, is not swallowed."""

    async def main() -> None:
        app = Listener()
        guard = Guard(app, DeadlinePolicy(20.0), Gate(1))
        served = Exchange().start(guard)
        await asyncio.sleep(0.01)
        served.cancel()
        with pytest.raises(asyncio.CancelledError):
            await served
        assert app.noted == ["cancelled", "work ended"]
        assert guard.snapshot().inflight == 0

    run(main())
