"""An asynchronous chain under WSGI: an event loop of its own for each request."""

from __future__ import annotations

import threading
import time

import pytest
from asgiref.sync import async_to_sync
from django.core.handlers.wsgi import WSGIHandler
from django.http import HttpResponse
from django.test import Client, RequestFactory

from resilience_mw import Config, Limit, protect
from resilience_mw import django as resilience
from resilience_mw.core import Gate, HealthPolicy
from resilience_mw.django import Guard
from tests.django.project import urls

requests = RequestFactory()


@pytest.fixture
def mixed(configure):
    """A limit of one before a middleware that knows coroutines only."""
    configure(
        RESILIENCE={"limit": {"max_concurrent_requests": 1}, "deadline": {"timeout": 60}},
        MIDDLEWARE=[
            "resilience_mw.django.ResilienceMiddleware",
            "tests.django.test_event_loop.from_loops_only",
        ],
    )


def state():
    snapshot = resilience.snapshot()
    assert snapshot is not None
    return snapshot


@pytest.mark.usefixtures("mixed")
def test_threads_are_counted_together():
    """Requests on different loops share one gate."""
    client = Client()
    urls.held["a"] = threading.Event()
    answers = []
    thread = threading.Thread(
        target=lambda: answers.append(client.get("/hold/a").status_code), daemon=True
    )
    thread.start()
    while not urls.seen:
        time.sleep(0.005)
    assert client.get("/sync").status_code == 503
    assert client.get("/livez").status_code == 200
    urls.held["a"].set()
    thread.join(20)
    assert answers == [200]
    assert client.get("/sync").json()["remaining"] > 0
    assert (state().inflight, state().admitted) == (0, 2)


@pytest.mark.usefixtures("mixed")
def test_a_guarded_application_is_not_guarded_twice():
    """The outer guard is seen through the loop, too."""
    app = protect(WSGIHandler(), Config(limit=Limit(max_concurrent_requests=5)))
    status = []
    body = app(requests.get("/sync").environ, lambda *start: status.append(start[0]))
    body.close()
    assert status == ["200 OK"]
    assert (app.snapshot().admitted, state().admitted) == (1, 0)


def test_the_slot_of_a_failing_chain_is_given_back():
    """An exception ends a request as a response does."""

    async def view(request):
        raise RuntimeError("failed")

    guard = Guard(view, Gate(1))
    with pytest.raises(RuntimeError, match="failed"):
        async_to_sync(guard)(requests.get("/"))
    assert guard.snapshot().inflight == 0


def test_before_its_first_request_a_guard_has_a_state_and_can_drain():
    """What kind of thread or loop it will run in is known only then."""

    async def view(request):
        return HttpResponse("done")

    guard = Guard(view, HealthPolicy(), Gate(3))
    assert guard.snapshot().limit == 3
    guard.drain()
    assert async_to_sync(guard)(requests.get("/readyz")).status_code == 503
