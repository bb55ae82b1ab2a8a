"""Django behind a guard around its whole ASGI application."""

from __future__ import annotations

import asyncio
import threading

import pytest
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.wsgi import WSGIHandler

from resilience_mw import Config, Deadline, Limit, protect
from resilience_mw.django import options
from tests.django.drive import Call, run, until
from tests.django.project import urls


@pytest.mark.parametrize("receive_timeout", [0, 30])
def test_the_deadline_ends_a_coroutine_through_django(receive_timeout):
    """Django is told that the client has left, and cancels the task of the view that only it knows.

    Cancelling Django's own task instead would leave the view running without a slot.
    """

    async def test():
        config = Config(deadline=Deadline(timeout=0.05, receive_timeout=receive_timeout))
        app = protect(ASGIHandler(), config)
        assert await Call(app, "/stay").answer() == (504, b"Gateway Timeout")
        await until(lambda: app.snapshot().inflight == 0)
        assert urls.seen == ["begin stay", "end stay"]

    run(test)


def test_the_deadline_of_a_thread_keeps_its_slot():
    """504 in time; the slot is taken for as long as the synchronous view really works."""

    async def test():
        config = Config(deadline=Deadline(timeout=0.1), limit=Limit(max_concurrent_requests=1))
        app = protect(ASGIHandler(), config)
        urls.held["a"] = threading.Event()
        call = Call(app, "/hold/a")
        assert await call.answer() == (504, b"Gateway Timeout")
        for _ in range(3):
            assert app.snapshot().inflight == 1
            assert (await Call(app, "/async").answer())[0] == 503
            await asyncio.sleep(0.03)
        urls.held["a"].set()
        await until(lambda: app.snapshot().inflight == 0)
        assert urls.seen == ["begin a", "end a"]

    run(test)


def test_the_setting_serves_both_places(configure):
    """`options` gives the outer guard what ``RESILIENCE`` says."""
    configure(RESILIENCE={"limit": {"max_concurrent_requests": 7}})
    app = protect(ASGIHandler(), options())

    async def test():
        assert (await Call(app, "/async").answer())[0] == 200

    run(test)
    limits = [getattr(part, "limit", None) for part in app.snapshot().policies]
    assert 7 in limits


@pytest.mark.parametrize("handler", [ASGIHandler, WSGIHandler])
def test_protect_reads_the_setting_by_itself(configure, monkeypatch, handler):
    """Moving from ``MIDDLEWARE`` to the outside loses nothing; environment and code still win."""
    configure(RESILIENCE={"limit": {"max_concurrent_requests": 7}})

    def fixed_limit(*arguments):
        parts = protect(handler(), *arguments).snapshot().policies
        return [part.limit for part in parts if getattr(part, "name", "") == "limit"]

    assert fixed_limit() == [7]
    monkeypatch.setenv("RESILIENCE_LIMIT_MAX_CONCURRENT_REQUESTS", "8")
    assert fixed_limit() == [8]
    assert fixed_limit(Config(limit=Limit(max_concurrent_requests=9))) == [9]
