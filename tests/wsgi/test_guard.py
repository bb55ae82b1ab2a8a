"""What the app and the server see of each other through a guard."""

from __future__ import annotations

import sys

import pytest

from resilience_mw.core import AIMD, AdaptiveGate, DeadlinePolicy, Gate, HealthPolicy, Policy, Reply
from resilience_mw.wsgi import Guard

from .harness import Response, begin, call, environ, hello


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
