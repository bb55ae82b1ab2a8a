"""Deadlines where nobody can stop a thread: late on arrival, remaining time, overruns."""

from __future__ import annotations

import threading
import time
from typing import Any

from resilience_mw import remaining
from resilience_mw.core import DeadlinePolicy, Gate
from resilience_mw.signals.waited import ARRIVED
from resilience_mw.wsgi import Guard

from .harness import PATIENCE, Response, begin, call, environ, hello


def stamped(ago: float) -> dict[str, Any]:
    """Return the fact that a request came so many seconds ago."""
    return {ARRIVED: time.monotonic() - ago}


def test_what_is_late_on_arrival_is_refused():
    """It has waited for a thread for too long: 504, and the app never runs."""
    deadline, gate = DeadlinePolicy(5.0), Gate(1)
    guard = Guard(hello, deadline, gate)
    assert call(guard, **stamped(1.0)) == (200, b"ok")
    assert call(guard, **stamped(6.0)) == (504, b"Gateway Timeout")
    assert (deadline.expired, gate.admitted) == (1, 1)
    assert guard.snapshot().refused == {"deadline": 1}


def test_remaining_is_what_is_left_of_the_deadline():
    """Minus what the request had waited; negative when late; None without one."""
    left: list[Any] = []

    def app(environ, start_response):
        left.append(remaining())
        return hello(environ, start_response)

    guard = Guard(app, DeadlinePolicy(10.0, header="X-Timeout"))
    call(guard, **stamped(0.0))
    call(guard, **stamped(4.0))
    call(guard, HTTP_X_TIMEOUT="2")
    call(Guard(app, DeadlinePolicy(None)))
    call(Guard(app, Gate(1)))
    assert 4.0 < left[0] <= 10.0
    assert left[1] <= 6.0
    assert left[2] <= 2.0
    assert left[3:] == [None, None]
    assert remaining() is None


def test_remaining_is_negative_when_late():
    """A view may look, and give up by itself."""
    left: list[Any] = []

    def app(environ, start_response):
        time.sleep(0.03)
        left.append(remaining())
        return hello(environ, start_response)

    deadline = DeadlinePolicy(0.01)
    assert call(Guard(app, deadline)) == (200, b"ok")
    assert left[0] < 0.0
    assert deadline.overrun == 1


def test_overruns_count_late_starts_not_late_ends():
    """A stream that began in time may take its time; nobody can stop a thread."""

    def slow_start(environ, start_response):
        time.sleep(0.03)
        return hello(environ, start_response)

    def slow_body(environ, start_response):
        start_response("200 OK", [])
        yield b"a"
        time.sleep(0.03)

    def never_starts(environ, start_response):
        time.sleep(0.03)
        return []

    counts = []
    for app in (hello, slow_start, slow_body, never_starts):
        deadline = DeadlinePolicy(0.02)
        call_without_status(Guard(app, deadline))
        counts.append(deadline.overrun)
    assert counts == [0, 1, 0, 1]


def call_without_status(app) -> None:
    """Send a request whose app may not even start a response."""
    response = Response()
    response.body = app(environ(), response.start)
    response.read()


def test_a_wait_ends_at_the_deadline():
    """The queue's own patience cannot lengthen it."""
    gate = Gate(1, max_queue=1, max_wait=PATIENCE)
    guard = Guard(hello, DeadlinePolicy(0.05), gate)
    gate.inflight = 1
    assert call(guard) == (504, b"Gateway Timeout")
    assert (gate.queued, guard.snapshot().refused) == (0, {"deadline": 1})


def test_an_old_request_of_the_same_thread_is_no_outer_one():
    """Its body may be read elsewhere, and for long: its deadline is not ours."""
    left: list[Any] = []

    def app(environ, start_response):
        left.append(remaining())
        return hello(environ, start_response)

    deadline = DeadlinePolicy(30.0, header="X-Timeout")
    guard = Guard(app, deadline)
    still_open = begin(guard, HTTP_X_TIMEOUT="1")
    call(guard)
    still_open.read()
    assert left[0] <= 1.0 < left[1]
    assert remaining() is None


def test_a_request_that_ends_in_another_thread_leaves_nothing_in_this_one():
    """Nothing of it is kept alive, and it is not taken for the next."""
    guard = Guard(hello, DeadlinePolicy(30.0))
    response = begin(guard)
    thread = threading.Thread(target=response.read)
    thread.start()
    thread.join(PATIENCE)
    assert remaining() is None
    assert guard.snapshot().refused == {}
