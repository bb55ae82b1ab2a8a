"""Django in synchronous mode."""

from __future__ import annotations

import gc
import logging
import threading
import time

import pytest
from django.core.exceptions import MiddlewareNotUsed
from django.core.handlers.wsgi import WSGIHandler
from django.http import HttpResponse, StreamingHttpResponse
from django.test import Client, RequestFactory

from resilience_mw import Config, ConfigError, Limit, protect, remaining
from resilience_mw import django as resilience
from resilience_mw.core import DeadlinePolicy, Gate, HealthPolicy, Policy
from resilience_mw.django import Guard, ResilienceMiddleware
from tests.django.project import urls

requests = RequestFactory()


def plain(request):
    return HttpResponse("plain")


def test_a_request_passes_and_gives_its_slot_back(configure):
    """The setting is read, the view runs, and nothing stays in flight."""
    configure(RESILIENCE={"limit": {"max_concurrent_requests": 3}})
    response = Client().get("/sync")
    state = resilience.snapshot()
    assert response.status_code == 200
    assert state is not None
    assert (state.inflight, state.admitted) == (0, 1)


def test_views_see_the_time_that_is_left(configure):
    """`remaining()` counts down from the deadline of the setting."""
    configure(RESILIENCE={"deadline": {"timeout": 20}})
    left = Client().get("/sync").json()["remaining"]
    assert 0 < left <= 20
    assert remaining() is None


def test_the_environment_goes_before_the_setting(configure, monkeypatch):
    """A variable wins over ``RESILIENCE``."""
    monkeypatch.setenv("RESILIENCE_LIMIT_MAX_CONCURRENT_REQUESTS", "7")
    configure(RESILIENCE={"limit": {"max_concurrent_requests": 3}})
    assert resilience.options().limit.max_concurrent_requests == 7


def test_a_wrong_setting_is_named_when_django_starts(configure):
    """The chain cannot be built with an option that breaks its rule."""
    configure(RESILIENCE={"limit": {"max_concurrent_requests": -1}})
    with pytest.raises(ConfigError, match=r"^RESILIENCE: limit\.max_concurrent_requests must be"):
        Client().get("/sync")


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/startupz"])
def test_probes_are_answered_in_the_middleware(path):
    """No URL is needed for them."""
    response = Client().get(path)
    assert (response.status_code, response.content) == (200, b"ok")
    assert Client().head(path).content == b""


def test_a_full_gate_answers_like_every_other_driver():
    """503, plain text, Retry-After, Content-Length; no body to HEAD."""
    gate = Gate(1)
    inner = []

    def view(request):
        inner.append(guard(requests.get("/")))
        inner.append(guard(requests.head("/")))
        return HttpResponse("done")

    guard = Guard(view, gate)
    assert guard(requests.get("/")).content == b"done"
    refusal, to_head = inner
    assert (refusal.status_code, refusal.content) == (503, b"Service Busy")
    assert refusal["Retry-After"] == "1"
    assert refusal["Content-Type"] == "text/plain; charset=utf-8"
    assert refusal["Content-Length"] == "12"
    assert to_head.content == b""
    assert guard.snapshot().refused == {"limit": 2}


def test_refusals_are_not_logged_as_errors(configure, caplog):
    """Under overload Django would otherwise mail each of them to the admins."""
    configure(RESILIENCE={"health": {"ready_path": "/ready"}})
    client = Client()
    client.get("/sync")
    resilience.drain()
    with caplog.at_level(logging.WARNING, "django.request"):
        assert client.get("/ready").status_code == 503
    assert caplog.records == []


def test_the_slot_of_a_failing_view_is_given_back():
    """An exception ends a request as a response does."""

    def view(request):
        raise RuntimeError("failed")

    guard = Guard(view, Gate(1), DeadlinePolicy(20.0))
    with pytest.raises(RuntimeError, match="failed"):
        guard(requests.get("/"))
    assert guard.snapshot().inflight == 0
    assert remaining() is None


def test_a_stream_holds_its_slot_until_it_is_closed():
    """The last byte ends the request, not the return of the view."""
    guard = Guard(lambda request: StreamingHttpResponse([b"a", b"b"]), Gate(1))
    response = guard(requests.get("/"))
    assert b"".join(response) == b"ab"
    assert guard.snapshot().inflight == 1
    response.close()
    response.close()
    assert guard.snapshot().inflight == 0


def test_a_stream_that_is_never_closed_loses_its_slot_with_itself():
    """A response that another middleware replaces is collected, not closed."""
    guard = Guard(lambda request: StreamingHttpResponse([b"a"]), Gate(1))
    response = guard(requests.get("/"))
    assert guard.snapshot().inflight == 1
    del response
    gc.collect()
    assert guard.snapshot().inflight == 0


def test_streaming_over_the_test_client(configure):
    """While Django sends the chunks, the request counts."""
    configure(RESILIENCE={"limit": {"max_concurrent_requests": 3}})
    response = Client().get("/stream")
    assert response.getvalue() == b"1\n1\n"
    response.close()
    state = resilience.snapshot()
    assert state is not None
    assert state.inflight == 0


def test_an_unfinished_stream_does_not_shelter_the_next_request():
    """A thread that still has a response open is not taken for a guarded application."""
    guard = Guard(lambda request: StreamingHttpResponse([b"a"]), Gate(1), DeadlinePolicy(20.0))
    first = guard(requests.get("/"))
    assert guard(requests.get("/")).status_code == 503
    first.close()


def test_a_request_waits_for_a_slot():
    """In a queue the thread waits, and the slot is handed over."""
    entered, go_on = threading.Event(), threading.Event()

    def view(request):
        entered.set()
        go_on.wait(20)
        return HttpResponse("done")

    guard = Guard(view, Gate(1, max_queue=1, max_wait=20.0))
    answers = []
    threads = [
        threading.Thread(target=lambda: answers.append(guard(requests.get("/")).status_code))
        for _ in range(2)
    ]
    threads[0].start()
    entered.wait(20)
    threads[1].start()
    while guard.snapshot().queued == 0:
        time.sleep(0.005)
    go_on.set()
    for thread in threads:
        thread.join(20)
    assert answers == [200, 200]
    assert guard.snapshot().inflight == 0


def test_a_late_response_is_counted():
    """A thread cannot be stopped, so the deadline only counts."""

    def view(request):
        while (left := remaining()) is not None and left > 0:
            time.sleep(left)
        return HttpResponse("late")

    policy = DeadlinePolicy(0.01)
    assert Guard(view, policy)(requests.get("/")).status_code == 200
    assert policy.overrun == 1


def test_a_path_that_is_not_ascii_is_decoded_once():
    """Policies see the path as a person writes it."""
    guard = Guard(plain, Gate(1, exempt=("/käse/",)))
    guard(requests.get("/käse/brot"))
    assert guard.snapshot().admitted == 0
    guard(requests.get("/brot"))
    assert guard.snapshot().admitted == 1


def test_a_guarded_application_is_not_guarded_twice(configure):
    """Behind `protect(get_wsgi_application())` the middleware lets requests pass."""
    configure(RESILIENCE={"limit": {"max_concurrent_requests": 3}})
    app = protect(WSGIHandler(), Config(limit=Limit(max_concurrent_requests=5)))
    environ = requests.get("/sync").environ
    body = app(environ, lambda status, headers: environ.update(status=status))
    assert environ["status"] == "200 OK"
    body.close()
    state = resilience.snapshot()
    assert state is not None
    assert (app.snapshot().admitted, state.admitted) == (1, 0)


def test_with_everything_off_the_middleware_is_not_used(configure):
    """Django leaves it out of the chain."""
    configure(RESILIENCE={"backpressure": {"enabled": False}, "deadline": {"timeout": None}})
    with pytest.raises(MiddlewareNotUsed):
        ResilienceMiddleware(plain)
    assert Client().get("/livez").status_code == 404


def test_a_policy_that_reroutes_is_refused():
    """MIDDLEWARE cannot call another application."""

    class Rollout(Policy):
        reroutes = True

    with pytest.raises(ConfigError, match=r"must not reroute .* got Rollout"):
        Guard(plain, Rollout())


def test_a_policy_stays_with_its_kind_of_guard():
    """The claim is made when the chain is built."""
    gate = Gate(1)
    with pytest.raises(ConfigError, match="distinct"):
        Guard(plain, gate, gate)


def test_without_a_middleware_there_is_no_snapshot(monkeypatch):
    """Nothing to report, and nothing to drain."""
    monkeypatch.setattr("resilience_mw.django.middleware._newest", None)
    assert resilience.snapshot() is None
    resilience.drain()


def test_a_draining_guard_is_not_ready_but_serves():
    """Readiness turns at once, requests are still served."""
    guard = Guard(plain, HealthPolicy(), Gate(1))
    guard.drain()
    assert guard(requests.get("/readyz")).status_code == 503
    assert guard(requests.get("/")).status_code == 200


def test_an_error_page_is_a_response(configure):
    """Django turns the exception of a view into a response further in."""
    configure(RESILIENCE={"limit": {"max_concurrent_requests": 3}})
    client = Client(raise_request_exception=False)
    assert client.get("/fail").status_code == 500
    assert client.get("/no/such/page").status_code == 404
    state = resilience.snapshot()
    assert state is not None
    assert (state.inflight, state.admitted) == (0, 2)
    assert urls.seen == []
