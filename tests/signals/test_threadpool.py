"""anyio's default limiter, as Starlette's sync endpoints use it."""

from __future__ import annotations

import asyncio
import sys
import threading

import anyio
import anyio.to_thread

from resilience_mw.signals.threadpool import pool_borrowed, pool_total, pool_waiting


def test_a_full_pool_shows_its_queue(run):
    """40 tokens, 45 calls: 40 run, 5 wait."""

    async def main():
        assert (pool_waiting(), pool_borrowed(), pool_total()) == (0, 0, 40)
        go = threading.Event()

        async def endpoint():
            await anyio.to_thread.run_sync(go.wait)

        async with anyio.create_task_group() as group:
            for _ in range(45):
                group.start_soon(endpoint)
            await anyio.wait_all_tasks_blocked()
            seen = pool_waiting(), pool_borrowed()
            go.set()
        return seen, pool_waiting(), pool_borrowed()

    assert run(main) == ((5, 40), 0, 0)


def test_it_can_be_read_from_a_timer(run):
    """A tick has no task around it."""

    async def main():
        loop = asyncio.get_running_loop()
        found = loop.create_future()
        pool_waiting()
        loop.call_later(0.01, lambda: found.set_result((pool_waiting(), pool_total())))
        return await found

    assert run(main) == (0, 40)


def test_outside_of_a_loop_there_is_no_pool():
    """None, and no error."""
    assert pool_waiting() == 0
    assert pool_borrowed() is None
    assert pool_total() is None


def test_a_loop_that_anyio_does_not_know(run, monkeypatch):
    """Without a backend there is no pool, until anyio finds one."""

    def lost():
        raise LookupError("unknown async library, or not in async context")

    async def main():
        with monkeypatch.context() as patch:
            patch.setattr(anyio.to_thread, "current_default_thread_limiter", lost)
            before = pool_waiting(), pool_total()
        return before, (pool_waiting(), pool_total())

    assert run(main) == ((0, None), (0, 40))


def test_anyio_is_not_imported_for_it(run, monkeypatch):
    """A program that does not use anyio's threads has none, and gets none by asking."""
    monkeypatch.delitem(sys.modules, "anyio.to_thread")

    async def main():
        return pool_waiting(), pool_borrowed(), pool_total()

    assert run(main) == (0, None, None)
    assert "anyio.to_thread" not in sys.modules
