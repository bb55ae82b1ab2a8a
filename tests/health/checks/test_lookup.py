"""A name server that hangs holds up its own check, and nothing else."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from resilience_mw.health import TcpCheck
from tests.health.checks.asking import PASSED, ask, verdict

NAME = "slow.example"


@pytest.fixture
def answered(monkeypatch) -> Iterator[threading.Event]:
    """Look-ups of `NAME` wait for this event, then find the loopback."""
    event = threading.Event()
    real = socket.getaddrinfo

    def look_up(host: str, port: int, **options: int) -> list[object]:
        if host == NAME and not options.get("flags"):
            event.wait(30)
            host = "127.0.0.1"
        return list(real(host, port, **options))

    monkeypatch.setattr("socket.getaddrinfo", look_up)
    yield event
    event.set()
    for thread in _look_ups():
        thread.join(10)


def _look_ups() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "health-dns"]


def test_rounds_of_a_hanging_look_up_leak_nothing(answered):
    """A thousand: one thread waits for all of them, and no task is left."""

    async def rounds() -> None:
        check = TcpCheck(NAME, 1, timeout=0.0005)
        for _ in range(1000):
            assert await verdict(check) == "timeout"
        assert len(_look_ups()) == 1
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(rounds())


def test_the_loop_goes_on_and_the_process_can_end(answered):
    """The thread is a daemon, and none of the pool that is waited for at exit."""

    async def others() -> int:
        asking = asyncio.create_task(verdict(TcpCheck(NAME, 1, timeout=0.5)))
        turns = 0
        while not asking.done():
            await asyncio.sleep(0.01)
            turns += 1
        assert asking.result() == "timeout"
        return turns

    assert asyncio.run(others()) >= 5
    assert all(thread.daemon for thread in _look_ups())


def test_a_late_answer_is_used(answered):
    """By the round that waits when it comes; the next looks up anew."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        check = TcpCheck(NAME, listener.getsockname()[1], timeout=0.05)
        assert ask(check) == "timeout"
        answered.set()
        check.timeout = 10.0
        assert ask(check) == PASSED
        assert ask(check) == PASSED


def test_no_such_name_in_the_thread_is_a_reason(monkeypatch):
    """Also for what the encoding of names refuses."""
    for error in (socket.gaierror(socket.EAI_NONAME, "no"), UnicodeError("label too long")):

        def fail(host: str, port: int, error: Exception = error, **options: int) -> None:
            raise socket.gaierror(socket.EAI_NONAME, "no") if options.get("flags") else error

        monkeypatch.setattr("socket.getaddrinfo", fail)
        assert ask(TcpCheck("some.example", 1, timeout=10)) == "dns"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_looks_up_for_itself(answered):
    """The thread that hung is not there, and nobody waits for it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        check = TcpCheck(NAME, listener.getsockname()[1], timeout=0.05)
        assert ask(check) == "timeout"
        child = os.fork()
        if child == 0:  # pragma: no cover - another process
            code = 1
            try:
                answered.set()
                check.timeout = 10.0
                code = 0 if ask(check) == PASSED else 2
            finally:
                os._exit(code)
        until = time.monotonic() + 30
        while time.monotonic() < until:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                break
            time.sleep(0.02)
        else:
            os.kill(child, 9)
            os.waitpid(child, 0)
            pytest.fail("the forked process hung")
        assert os.waitstatus_to_exitcode(status) == 0
