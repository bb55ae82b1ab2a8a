"""What the app knows of its deadline, and that it runs in the context it would run in."""

from __future__ import annotations

import asyncio
import contextvars
from typing import Any

from resilience_mw import remaining

from .harness import Holding, aside, call, hello, run
from .late import assert_late, guarded


def test_context_variables_are_the_same_inside_and_outside():
    """The app runs in the task, and so in the context, of the server."""
    variable = contextvars.ContextVar("variable", default="unset")

    async def main():
        async def app(scope, receive, send):
            assert variable.get() == "outer"
            variable.set("app")
            await hello(scope, receive, send)

        guard, _, _ = guarded(app, 20.0)

        async def outer(scope, receive, send):
            variable.set("outer")
            await guard(scope, receive, send)
            assert variable.get() == "app"

        assert (await call(outer)).status == 200
        guard.close()

    run(main())


def test_remaining_counts_down_and_is_none_outside():
    """For the timeouts of what a view calls; in its tasks and threads, too."""

    async def main():
        assert remaining() is None
        seen: list[Any] = []

        async def app(scope, receive, send):
            seen.append(remaining())
            seen.append(await asyncio.create_task(left()))
            seen.append(await asyncio.to_thread(remaining))
            await hello(scope, receive, send)

        async def left():
            return remaining()

        guard, _, _ = guarded(app, 10.0)
        await call(guard)
        assert 10.0 >= seen[0] >= seen[1] >= seen[2] > 0.0
        assert remaining() is None
        guard.close()

    run(main())


def test_remaining_sees_the_nearest_deadline_around_it():
    """A guard further in inherits it, and takes it back when it has ended."""

    async def main():
        seen: dict[str, Any] = {}

        async def app(scope, receive, send):
            seen["app"] = remaining()
            await hello(scope, receive, send)

        inner, _, _ = guarded(app, 50.0)

        async def between(scope, receive, send):
            seen["before"] = remaining()
            await inner(scope, receive, send)
            seen["after"] = remaining()

        outer, _, _ = guarded(between, 10.0)
        await call(outer)
        assert 10.0 >= seen["before"] >= seen["app"] >= seen["after"] > 0.0
        inner.close()
        outer.close()

    run(main())


def test_the_outer_deadline_holds_for_an_inner_guard():
    """One answer, whoever gives it, and no cancellation left over."""

    async def main():
        inner, _, inner_gate = guarded(Holding(), 20.0)
        outer, _, outer_gate = guarded(aside(inner))
        assert_late(await call(outer))
        assert (inner_gate.inflight, outer_gate.inflight) == (0, 0)
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        inner.close()
        outer.close()

    run(main())
