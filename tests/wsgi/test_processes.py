"""Forks, threads, and what outlives a request."""

from __future__ import annotations

import gc
import io
import os
import threading
import weakref

import pytest

from resilience_mw.core import AIMD, AdaptiveGate, DeadlinePolicy, Gate, GateSnapshot, HealthPolicy
from resilience_mw.wsgi import Guard

from .harness import PATIENCE, call, hello


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
