"""What a request leaves behind: nothing, and at no moment a deadlock."""

from __future__ import annotations

import gc
import io
import logging
import threading
import weakref

import pytest

from resilience_mw.core import Gate
from resilience_mw.wsgi import Guard

from .bodies import BODIES, answering, generate
from .harness import Response, begin, call, environ


@pytest.mark.parametrize("kind", ["list", "generator"])
def test_a_finished_request_is_freed_at_once(kind):
    """Without the cyclic collector: it may hold a socket, and a large upload."""
    guard = Guard(answering(BODIES[kind]()), Gate(1))
    gc.collect()
    gc.disable()
    try:
        upload = io.BytesIO(b"x")
        token = weakref.ref(upload)
        response = begin(guard, **{"wsgi.input": upload})
        del upload
        response.read()
        response.body = None
        assert token() is None
    finally:
        gc.enable()


def test_a_body_that_dies_in_a_locked_section_does_not_deadlock(caplog):
    """The garbage collector may close it while its thread holds the lock."""
    caplog.set_level(logging.ERROR)
    gate = Gate(2)
    guard = Guard(answering(generate()), gate)

    class Middleware:
        """Keeps its body in a cycle, and closes it when it is collected."""

        def __init__(self, body):
            self.body, self.me = body, self

        def __del__(self):
            self.body.close()

    Middleware(begin(guard).body)
    done = threading.Event()

    def collect():
        with guard._section:
            gc.collect()
            assert gate.inflight == 1  # not yet: somebody holds the lock
        done.set()

    thread = threading.Thread(target=collect, daemon=True)
    thread.start()
    assert done.wait(10.0), "deadlock"
    thread.join()
    assert gate.inflight == 0
    assert call(guard)[0] == 200


def test_the_environ_is_handed_back_as_it_was():
    """A server that reuses it, or a middleware further out, finds nothing of ours."""
    guard = Guard(answering([b"x"]), Gate(1))
    facts = environ()
    before = dict(facts)
    body = guard(facts, Response().start)
    getattr(body, "close", bool)()
    assert facts == before
