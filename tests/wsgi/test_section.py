"""The lock that never makes a finalizer or a signal handler wait."""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time

import pytest

from resilience_mw.core import Gate, HealthPolicy
from resilience_mw.wsgi import Guard
from resilience_mw.wsgi.section import Section, shared_section

from .harness import PATIENCE, begin, hello, until


def test_a_job_runs_at_once_if_the_lock_is_free():
    """Before `soon` returns."""
    section, ran = Section(), []
    section.soon(lambda: ran.append(1))
    assert ran == [1]


def test_a_job_asked_for_under_the_lock_runs_when_it_is_given_up():
    """In order, and before the release returns."""
    section, ran = Section(), []
    with section:
        section.soon(lambda: ran.append(1))
        section.soon(lambda: ran.append(2))
        assert ran == []
    assert ran == [1, 2]


def test_a_job_may_ask_for_another():
    """It runs in the same go."""
    section, ran = Section(), []

    def job():
        section.soon(lambda: ran.append(2))
        ran.append(1)

    section.soon(job)
    assert ran == [1, 2]


def test_who_takes_the_lock_does_first_what_is_due():
    """Nobody decides on old counts."""
    section, ran = Section(), []
    section.due.append(lambda: ran.append(1))
    with section:
        assert ran == [1]


def test_a_job_that_fails_is_logged_and_keeps_nobody_from_theirs(caplog):
    """The thread that runs it may be another's."""
    caplog.set_level(logging.ERROR, "resilience_mw")
    section, ran = Section(), []

    def fail():
        raise ValueError("broken")

    with section:
        section.soon(fail)
        section.soon(lambda: ran.append(1))
    assert ran == [1]
    assert [record.exc_info[0] for record in caplog.records] == [ValueError]


@pytest.mark.parametrize("how", ["soon", "acquire", "release"])
def test_a_job_that_ends_the_process_leaves_the_lock_free(how):
    """Whoever cleans up meanwhile needs it."""
    section, ran = Section(), []

    def leave():
        raise SystemExit

    def run():
        if how == "soon":
            section.soon(leave)
        elif how == "acquire":
            section.due.append(leave)
            section.acquire()
        else:
            with section:
                section.soon(leave)

    with pytest.raises(SystemExit):
        run()
    section.soon(lambda: ran.append(1))
    assert ran == [1]


def test_an_error_inside_gives_the_lock_up():
    """As any context manager does."""
    section = Section()
    with pytest.raises(KeyError), section:
        raise KeyError
    with section:
        pass


def test_no_job_is_left_lying_whoever_holds_the_lock():
    """Many threads ask and take in turn; every job has run when all are done."""
    section, count = Section(), 0

    def job():
        nonlocal count
        count += 1  # only ever under the lock

    def work():
        for turn in range(300):
            if turn % 3:
                section.soon(job)
            else:
                with section:
                    job()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert count == 8 * 300
    assert not section.due


def test_guards_of_a_process_share_one_section():
    """So that they may share a policy."""
    assert Guard(hello, Gate(1))._section is Guard(hello, Gate(1))._section is shared_section()


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="the platform has no such signal")
def test_a_signal_handler_may_drain_a_guard_that_its_thread_is_in_the_middle_of():
    """A sync worker serves and is told to stop in the same thread."""
    gate, health = Gate(1, max_queue=5, max_wait=PATIENCE), HealthPolicy()
    guard = Guard(hello, health, gate)
    holder = begin(guard)
    waiter = threading.Thread(target=begin, args=(guard,))
    waiter.start()
    until(lambda: guard.snapshot().queued == 1)
    before = signal.signal(signal.SIGUSR1, lambda *what: guard.drain())
    try:
        with guard._section:
            signal.raise_signal(signal.SIGUSR1)
            time.sleep(0)
            assert gate.queued == 1  # not while the gate may be in the middle of something
    finally:
        signal.signal(signal.SIGUSR1, before)
    waiter.join(PATIENCE)
    assert not waiter.is_alive()
    assert not health.lifecycle.ready
    assert gate.refused == {"draining": 1}
    holder.read()
    assert gate.inflight == 0
