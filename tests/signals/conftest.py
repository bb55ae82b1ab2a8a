"""Running a coroutine function on each kind of loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvloop

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}

Run = Callable[[Callable[[], Awaitable[Any]]], Any]


@pytest.fixture(params=LOOPS)
def run(request) -> Run:
    """Run a coroutine function to its end on a fresh asyncio loop, then on a fresh uvloop."""

    def on_loop(main: Callable[[], Awaitable[Any]]) -> Any:
        with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
            return runner.run(main())  # type: ignore[arg-type]

    return on_loop


def spin(seconds: float) -> None:
    """Burn the CPU."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass
