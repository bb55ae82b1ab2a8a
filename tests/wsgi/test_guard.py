"""The WSGI driver: answers, deadlines, nesting, and what it passes on."""

from __future__ import annotations

import gc
import io
import logging
import os
import socket
import sys
import threading
import time
import weakref
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resilience_mw import ConfigError, remaining
from resilience_mw.asgi import Guard as ASGIGuard
from resilience_mw.core import (
    AIMD,
    AdaptiveGate,
    DeadlinePolicy,
    Gate,
    GateSnapshot,
    HealthPolicy,
    Policy,
    Reply,
)
from resilience_mw.core.exchange import KEY
from resilience_mw.signals.waited import ARRIVED
from resilience_mw.wsgi import (
    BackpressureMiddleware,
    ConcurrencyLimitMiddleware,
    DeadlineMiddleware,
    Guard,
    HealthMiddleware,
)
from resilience_mw.wsgi.exchange import client_left
from tests.core.steps import Fork, Refuse, Step, expected

from .harness import PATIENCE, Response, aside, begin, call, environ, hello, until

DOES = st.sampled_from(["pass", "pass", "skip", "stop", "raise", "fail late"])


@settings(max_examples=150)
@given(behaviours=st.lists(DOES, min_size=1, max_size=6), data=st.data())
def test_any_stack_gives_the_trace_of_one_row(behaviours: list[str], data: st.DataObject):
    """However the policies are spread over guards, merged or not: left in reverse, once each."""
    logging.disable(logging.ERROR)
    trace: list[tuple[str, str]] = []

    def app(environ, start_response):
        trace.append(("app", ""))
        return hello(environ, start_response)

    stack = app
    steps = [Step(trace, str(name), does) for name, does in enumerate(behaviours)]
    left = list(steps)
    while left:
        size = data.draw(st.integers(1, len(left)), "policies in this guard")
        row, left = left[-size:], left[:-size]
        if isinstance(stack, Guard) and data.draw(st.booleans(), "something in between"):
            stack = aside(stack)
        stack = Guard(stack, *row)
    response = Response()
    try:
        response.body = stack(environ(), response.start)
        response.read()
    except Refuse:
        response.body = None
    finally:
        logging.disable(logging.NOTSET)
    assert trace == expected(behaviours)
    reached = behaviours[: sum(event == "enter" for event, _ in trace)]
    assert response.status == {"stop": 418, "raise": 0}.get(reached[-1], 200)
    for step in steps:
        if step.times:
            arrived, ended = step.times
            assert ended >= arrived > 0.0


def test_the_named_middlewares_merge():
    """Five of them cost what one guard costs."""
    guard = HealthMiddleware(
        DeadlineMiddleware(
            ConcurrencyLimitMiddleware(BackpressureMiddleware(hello), max_concurrent_requests=5)
        )
    )
    assert guard.app is hello
    assert [type(policy).__name__ for policy in guard.policies] == [
        "HealthPolicy",
        "DeadlinePolicy",
        "Gate",
        "AdaptiveGate",
    ]


def test_a_rerouting_policy_is_not_merged_past():
    """Only the inner guard of the app that was chosen may count the request."""

    def other(environ, start_response):
        start_response("202 Accepted", [])
        return []

    inner_gate, outer_gate = Gate(1), Gate(5)
    inner = Guard(hello, inner_gate)
    guard = Guard(Guard(inner, Fork(other)), outer_gate)
    assert guard.app is inner
    assert call(guard) == (202, b"")
    assert (outer_gate.admitted, inner_gate.admitted) == (1, 0)
    assert call(Guard(inner, Fork(None))) == (200, b"ok")
    assert inner_gate.admitted == 1


def test_a_policy_of_another_kind_of_driver_is_refused():
    """A gate that is not locked is not for threads."""

    async def app(scope, receive, send): ...

    gate = Gate(1)
    ASGIGuard(app, gate)
    with pytest.raises(ConfigError, match="one kind of driver"):
        Guard(hello, gate)


def test_guards_may_share_a_policy():
    """One limit over several apps; their requests may wait for each other."""
    gate = Gate(1, max_queue=1, max_wait=PATIENCE)
    first, second = Guard(hello, gate), Guard(hello, gate)
    holder = begin(first)
    answers = []
    waiter = threading.Thread(target=lambda: answers.append(call(second)))
    waiter.start()
    until(lambda: second.snapshot().queued == 1)
    holder.read()
    waiter.join(PATIENCE)
    assert answers == [(200, b"ok")]
    assert gate.inflight == 0


# -- what the app and the server see of each other ---------------------------------------------


@pytest.mark.parametrize("row", [[], [DeadlinePolicy(30.0)]], ids=["plain", "observed"])
def test_start_response_passes_as_the_app_called_it(row):
    """With exc_info only if it was given, twice if it was called twice; write is the server's."""

    def app(environ, start_response):
        write = start_response("200 OK", [("X-A", "1")])
        write(b"written ")
        try:
            raise ValueError("half-way")
        except ValueError:
            start_response("500 Oops", [("X-B", "2")], sys.exc_info())
        start_response("501 Worse", [], None)
        return [b"returned"]

    policies = [type(policy)(30.0) for policy in row]
    response = begin(Guard(app, *policies))
    assert response.read() == b"written returned"
    first, second, third = response.starts
    assert first == ("200 OK", [("X-A", "1")])
    assert second[:2] == ("500 Oops", [("X-B", "2")])
    assert second[2][0] is ValueError
    assert third[:2] == ("501 Worse", [])


def test_exc_info_may_be_given_by_name():
    """The servers' own functions take it so, and some apps call them so."""

    def app(environ, start_response):
        start_response("500 Oops", [], exc_info=(None, None, None))
        return []

    assert begin(Guard(app, DeadlinePolicy(30.0))).starts[0][2] == (None, None, None)


def test_a_server_that_raises_from_start_response_is_heard():
    """After the headers are out it re-raises the app's error."""

    def app(environ, start_response):
        try:
            raise ValueError("late")
        except ValueError:
            start_response("500 Oops", [], sys.exc_info())

    def start_response(status, headers, exc_info=None):
        raise exc_info[1]

    gate = Gate(1)
    guard = Guard(app, DeadlinePolicy(30.0), gate)
    with pytest.raises(ValueError, match="late"):
        guard(environ(), start_response)
    assert gate.inflight == 0


def test_the_peer_is_who_is_connected():
    """By the environ where the socket cannot be reached."""
    peers = []

    class Asking(Policy):
        def enter(self, exchange):
            peers.append(exchange.peer)

    call(Guard(hello, Asking()))
    assert peers == ["127.0.0.1"]


def test_no_answer_has_a_hop_by_hop_header():
    """They are the server's own; some make a 500 of a response that has one."""

    class Close(Policy):
        def enter(self, exchange):
            return Reply(408, "x", close=True)

    response = begin(Guard(hello, Close()))
    assert {name.lower() for name, _ in response.headers} == {"content-type", "content-length"}
    assert response.starts[0][0] == "408 Request Timeout"


def test_each_answer_has_headers_of_its_own():
    """Servers and middlewares add to the list in place."""
    guard = Guard(hello, Gate(0))
    begin(guard).headers.append(("X-Stamp", "1"))
    assert len(begin(guard).headers) == 3


@pytest.mark.parametrize(
    ("path", "exempt"),
    [
        ("/static/a", True),
        ("/stätic".encode().decode("latin-1"), False),
        ("/ünï/x".encode().decode("latin-1"), True),
        ("/\xff\xfe", False),
        ("", False),
    ],
)
def test_paths_are_decoded_as_the_spec_says(path, exempt):
    """Bytes in Latin-1 that mean UTF-8; what is no UTF-8 is no reason to fail."""
    guard = Guard(hello, Gate(0, exempt=("/static/", "/ünï/")))
    assert call(guard, path)[0] == (200 if exempt else 503)


def test_a_missing_path_is_empty():
    """PATH_INFO may be left out."""
    facts = environ()
    del facts["PATH_INFO"]
    response = Response()
    response.body = Guard(hello, HealthPolicy(), Gate(1, exempt=("/x",)))(facts, response.start)
    assert response.read() == b"ok"


HOSTILE = ["", "\xff\xfe", "9" * 100_000, "nan", "-1", "1e308", "1,2", "½", "\x00"]


@pytest.mark.parametrize("value", HOSTILE)
def test_hostile_headers_never_raise(value):
    """Huge, empty, not ASCII, not a number: ignored, counted, and the request is served."""
    deadline = DeadlinePolicy(30.0, header="X-Request-Timeout")
    guard = Guard(hello, deadline, AdaptiveGate(AIMD(), trusted_proxies=("127.0.0.1",)))
    facts = {"HTTP_X_REQUEST_TIMEOUT": value, "HTTP_X_REQUEST_START": value}
    assert call(guard, **facts) == (200, b"ok")
    assert deadline.ignored_headers == 1


# -- deadlines ---------------------------------------------------------------------------------


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


# -- guards inside guards ----------------------------------------------------------------------


class Watching(AdaptiveGate):
    """An adaptive gate that says how many samples it has taken."""

    def __init__(self) -> None:
        super().__init__(AIMD())

    @property
    def samples(self) -> int:
        """Samples of the window that is open."""
        return len(self._latencies)


@pytest.mark.parametrize(
    "inner",
    [lambda: Gate(0), lambda: AdaptiveGate(AIMD(initial_limit=1, max_limit=1), max_queue=0)],
    ids=["fixed", "adaptive"],
)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_refusal_further_in_is_no_sample_for_any_gate_further_out(inner, depth):
    """However many guards are in between: it was quick because nothing was done."""
    gate = inner()
    gate.inflight = 1
    stack = Guard(hello, gate)
    outer = [Watching() for _ in range(depth)]
    for watching in outer:
        stack = Guard(aside(stack), watching)
    for _ in range(3):
        assert call(stack)[0] == 503
    assert [watching.samples for watching in outer] == [0] * depth
    assert [watching.inflight for watching in outer] == [0] * depth
    gate.inflight = 0
    if gate.limit:
        assert call(stack)[0] == 200
        assert [watching.samples for watching in outer] == [1] * depth


def test_the_outer_deadline_is_known_further_in_and_afterwards():
    """remaining() sees the nearest around it, also when the inner guard has ended."""
    seen: dict[str, Any] = {}

    def app(environ, start_response):
        seen["app"] = remaining()
        return hello(environ, start_response)

    inner = Guard(app, DeadlinePolicy(50.0))

    def between(environ, start_response):
        seen["before"] = remaining()
        body = inner(environ, start_response)
        chunks = list(body)
        getattr(body, "close", bool)()
        seen["after"] = remaining()
        return chunks

    assert call(Guard(between, DeadlinePolicy(10.0))) == (200, b"ok")
    assert 10.0 >= seen["before"] >= seen["app"] >= seen["after"] > 0.0


def test_a_second_guard_further_in_is_nested_like_the_first():
    """A cascade tries one app after the other."""
    seen: list[Any] = []

    def app(environ, start_response):
        seen.append(remaining())
        return hello(environ, start_response)

    inner = [Guard(app, DeadlinePolicy(50.0)) for _ in range(2)]

    def cascade(environ, start_response):
        for guard in inner:
            list(body := guard(environ, start_response))
            getattr(body, "close", bool)()
        return []

    call(Guard(cascade, DeadlinePolicy(10.0)))
    assert all(0.0 < left <= 10.0 for left in seen)


def test_a_guard_further_in_may_outlive_the_one_further_out():
    """A middleware may keep the body for later: each gives back what it took."""
    bodies: list[Any] = []
    inner_gate, outer_gate = Watching(), Watching()
    inner = Guard(hello, DeadlinePolicy(10.0), inner_gate)

    def early(environ, start_response):
        bodies.append(inner(environ, start_response))
        return []

    facts = environ()
    outer = Guard(early, DeadlinePolicy(10.0), outer_gate)
    body = outer(facts, Response().start)
    getattr(body, "close", bool)()
    assert (inner_gate.inflight, outer_gate.inflight) == (1, 0)
    bodies.pop().close()
    assert (inner_gate.inflight, outer_gate.inflight) == (0, 0)
    assert KEY not in facts


def test_a_call_to_another_app_from_inside_is_another_request():
    """What that refuses is not this one's refusal."""
    gate = Watching()
    other = Guard(hello, Gate(0))

    def app(environ, start_response):
        assert call(other)[0] == 503
        return hello(environ, start_response)

    assert call(Guard(app, gate)) == (200, b"ok")
    assert gate.samples == 1


def test_the_exchange_can_be_found_while_the_request_runs():
    """For guards further in, and for whoever is curious."""
    seen: list[Any] = []

    def app(environ, start_response):
        seen.append(environ[KEY].deadline)
        return hello(environ, start_response)

    call(Guard(app, DeadlinePolicy(10.0)))
    assert seen[0] > time.monotonic()


# -- clients that leave ------------------------------------------------------------------------


@pytest.fixture
def pair():
    """A connection: the server's side and the client's."""
    listener = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(listener.getsockname())
    server, _ = listener.accept()
    with listener, client, server:
        yield server, client


def left(server) -> bool:
    """Ask about the client of that socket."""
    return client_left({"gunicorn.socket": server})


def test_without_a_socket_nobody_is_known_to_have_left():
    """Most servers do not show it."""
    assert client_left({}) is False


def test_a_client_that_closes_is_known_to_have_left(pair):
    """And one that is silent, or sends on, is not."""
    server, client = pair
    assert not left(server)
    client.sendall(b"more")
    until(lambda: server.recv(1, socket.MSG_PEEK))
    assert not left(server)
    assert server.recv(4) == b"more"
    client.close()
    until(lambda: left(server))


def test_a_client_that_resets_is_known_to_have_left(pair):
    """An error is no client either."""
    server, client = pair
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    client.close()
    until(lambda: left(server))


def test_a_closed_socket_has_no_client(pair):
    """The server has given up on it."""
    server, _ = pair
    server.close()
    assert left(server)


def test_asking_never_waits(pair):
    """A socket with a timeout would wait for it, whatever the flags say."""
    server, _ = pair
    for timeout in (30.0, None, 0.0):
        server.settimeout(timeout)
        began = time.monotonic()
        assert not left(server)
        assert time.monotonic() - began < 5.0


def test_a_gevent_socket_does_not_block(pair):
    """It waits for something to read, unless the socket inside is asked."""
    gevent = pytest.importorskip("gevent.socket")
    server, client = pair
    cooperative = gevent.socket(fileno=os.dup(server.fileno()))
    try:
        began = time.monotonic()
        assert not left(cooperative)
        assert time.monotonic() - began < 5.0
        client.close()
        until(lambda: left(cooperative))
    finally:
        cooperative.close()


def test_a_tls_socket_says_nothing():
    """It knows no flags."""

    class Encrypted:
        def gettimeout(self):
            return None

        def recv(self, size, flags):
            raise ValueError("non-zero flags not allowed in calls to recv() on SSLSocket")

    assert not left(Encrypted())


@pytest.mark.parametrize("gone", [True, False])
def test_waitress_is_asked_by_its_own_function(gone):
    """It knows better than the socket."""
    assert client_left({"waitress.client_disconnected": lambda: gone}) is gone


def test_a_client_that_left_the_queue_costs_nothing(pair):
    """Its handler never runs, and it is not counted as refused."""
    server, client = pair
    gate = Gate(1, max_queue=1, max_wait=PATIENCE)
    guard = Guard(hello, gate)
    holder = begin(guard)
    statuses = []
    facts = {"gunicorn.socket": server}
    waiter = threading.Thread(target=lambda: statuses.append(call(guard, **facts)))
    waiter.start()
    until(lambda: guard.snapshot().queued == 1)
    client.close()
    waiter.join(PATIENCE)
    assert statuses == [(503, b"Service Busy")]
    assert (gate.queued, gate.inflight, gate.refused) == (0, 1, {})
    holder.read()
    assert gate.inflight == 0


@pytest.mark.parametrize("error", [OSError, SystemExit])
def test_an_error_while_waiting_gives_the_place_up(error):
    """Whatever interrupts a waiting thread."""

    def fail():
        raise error

    gate = Gate(1, max_queue=1, max_wait=PATIENCE)
    outer = Gate(5)
    guard = Guard(hello, outer, gate)
    gate.inflight = 1
    with pytest.raises(error):
        call(guard, **{"waitress.client_disconnected": fail})
    assert (gate.queued, gate.inflight, outer.inflight) == (0, 1, 0)
    gate.inflight = 0
    assert call(guard) == (200, b"ok")


def test_waiting_threads_tick_the_gate_they_wait_at():
    """A window may end while everybody waits, and make room."""

    class Growing(AIMD):
        def update(self, window):
            self.limit = 2
            return 2

    law = Growing(initial_limit=1, max_limit=5, window=0.05)
    gate = AdaptiveGate(law, max_queue=1)
    guard = Guard(hello, gate)
    holder = begin(guard)
    assert call(guard) == (200, b"ok")
    assert law.limit == 2
    holder.read()


# -- processes ---------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
def test_a_guard_built_before_a_fork_works_in_both_processes():
    """Nothing of the parent's is in the child's way."""
    gate = Gate(1)
    guard = Guard(hello, HealthPolicy(), DeadlinePolicy(10.0), gate, AdaptiveGate(AIMD()))
    call(guard)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            served = [call(guard, path) for path in ("/", "/readyz")]
            code = 0 if served == [(200, b"ok")] * 2 and gate.admitted == 2 else 2
        finally:
            os._exit(code)
    assert [call(guard, path) for path in ("/", "/readyz")] == [(200, b"ok")] * 2
    assert gate.admitted == 2
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_finished_request_keeps_nothing_alive():
    """Not in the environ, not in the thread's context."""
    guard = Guard(hello, DeadlinePolicy(10.0), AdaptiveGate(AIMD()))
    call(guard)
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        for _ in range(50):
            call(guard)
        assert len(gc.get_objects()) - before < 50
        upload = io.BytesIO(b"x")
        token = weakref.ref(upload)
        call(guard, **{"wsgi.input": upload})
        del upload
        assert token() is None
    finally:
        gc.enable()


def test_a_snapshot_is_of_one_moment():
    """No thread is half-way through a change."""
    gate = Gate(3)
    guard = Guard(hello, gate)
    stop = threading.Event()

    def load():
        while not stop.is_set():
            call(guard)

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(300):
            snapshot = guard.snapshot()
            (part,) = snapshot.policies
            assert isinstance(part, GateSnapshot)
            assert (part.inflight, part.admitted) == (snapshot.inflight, snapshot.admitted)
            assert 0 <= snapshot.inflight <= 3
            assert snapshot.inflight <= snapshot.admitted
    finally:
        stop.set()
        for thread in threads:
            thread.join(PATIENCE)
    assert guard.snapshot().inflight == 0
