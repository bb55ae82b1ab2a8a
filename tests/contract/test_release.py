"""When a request is over, and what must not keep its slot."""

from __future__ import annotations

import asyncio
import logging

import pytest

from resilience_mw.core import Gate

from .drivers import Driver
from .script import ANSWER, HOLD, STREAM, Chunk, End, Fail, Pause, Script, Start


def free(driver: Driver) -> None:
    """Check that the slot comes back, and that it is given again."""
    driver.eventually(lambda now: now.inflight == 0)
    assert driver.send().result().status == 200
    driver.eventually(lambda now: now.inflight == 0)


def test_a_stream_keeps_its_slot_until_the_last_byte(driver: Driver):
    """Headers and half of the body are not the end."""
    driver.build(Gate(1))
    stream = driver.send(STREAM).paused()
    assert (stream.response.status, stream.response.body) == (200, b"first ")
    assert driver.snapshot().inflight == 1
    assert driver.send().result().status == 503
    assert stream.finish().body == b"first last"
    free(driver)


@pytest.mark.parametrize(
    "script",
    [
        (Fail(),),
        (Pause(), Fail()),
        (Start(), Pause(), Fail()),
        (Start(), Chunk(b"half"), Pause(), Fail()),
    ],
    ids=["at once", "before the start", "after the start", "in the body"],
)
def test_a_failing_app_gives_its_slot_back(
    driver: Driver, script: Script, caplog: pytest.LogCaptureFixture
):
    """The server sees the failure as if we were not there."""
    caplog.set_level(logging.CRITICAL, "django.request")
    driver.build(Gate(1))
    call = driver.send(script)
    if Pause() in script:
        call.paused()
        assert driver.snapshot().inflight == 1
        call.go()
    assert call.result().failed
    free(driver)


@pytest.mark.drivers("asgi", "asgi-uvloop", "wsgi")
@pytest.mark.parametrize("end", [(), (Fail(),)], ids=["well", "badly"])
def test_work_after_the_body_is_part_of_the_request(driver: Driver, end: Script):
    """Background tasks (ASGI) and what `close` does (WSGI) hold the slot, and may fail."""
    driver.build(Gate(1))
    call = driver.send((Start(), Chunk(b"ok"), End(), Pause(), *end)).paused()
    assert call.response.body == b"ok"
    assert driver.snapshot().inflight == 1
    assert driver.send().result().status == 503
    call.finish()
    free(driver)


@pytest.mark.drivers("wsgi", "django-sync")
@pytest.mark.parametrize("script", [ANSWER, STREAM, (Start(204),)], ids=["one", "stream", "none"])
@pytest.mark.parametrize("closes", [2, 3])
def test_a_body_closed_more_than_once_gives_back_one_slot(
    driver: Driver, script: Script, closes: int
):
    """Twice closed is closed."""
    driver.build(Gate(2))
    other = driver.send(HOLD).paused()
    call = driver.send(script, closes=closes)
    if Pause() in script:
        call.paused().go()
    call.result()
    assert driver.eventually(lambda now: now.inflight <= 1).inflight == 1
    other.finish()
    free(driver)


@pytest.mark.drivers("wsgi", "django-sync")
@pytest.mark.parametrize("script", [ANSWER, STREAM, (Start(204),)], ids=["one", "stream", "none"])
def test_a_body_that_is_never_closed_gives_its_slot_back(driver: Driver, script: Script):
    """A server that forgets to close, or dies doing something else, costs no slot."""
    driver.build(Gate(1))
    call = driver.send(script, closes=0)
    if Pause() in script:
        call.paused().go()
    call.result()
    driver.calls.remove(call)
    call.close()
    del call
    free(driver)


EVERYWHERE: Script = (Pause(), Start(), Pause(), Chunk(b"a"), Pause(), Chunk(b"b"), Pause())


@pytest.mark.drivers("asgi", "asgi-uvloop")
@pytest.mark.parametrize("at", range(4))
def test_a_request_cancelled_at_any_pause_gives_its_slot_back(driver: Driver, at: int):
    """Before the start, after it, in the body, and after the body."""
    driver.build(Gate(1))
    call = driver.send(EVERYWHERE).paused()
    for _ in range(at):
        call.go().paused()
    assert driver.snapshot().inflight == 1
    call.cancel()
    assert isinstance(call.result().error, asyncio.CancelledError)
    free(driver)


@pytest.mark.drivers("django-async")
@pytest.mark.parametrize("at", range(4))
def test_a_client_that_leaves_at_any_pause_frees_the_slot(driver: Driver, at: int):
    """Django cancels the view; the slot comes back when that has happened."""
    driver.build(Gate(1))
    call = driver.send(EVERYWHERE).paused()
    for _ in range(at):
        call.go().paused()
    assert driver.snapshot().inflight == 1
    call.leave().result()
    free(driver)


@pytest.mark.drivers("asgi", "asgi-uvloop")
def test_a_request_cancelled_in_the_queue_leaves_it(driver: Driver):
    """Its handler never runs, and the slot goes to the next."""
    driver.build(Gate(1, max_queue=2, max_wait=20.0))
    running = driver.send(HOLD).paused()
    cancelled = driver.send()
    driver.eventually(lambda now: now.queued == 1)
    following = driver.send()
    driver.eventually(lambda now: now.queued == 2)
    cancelled.cancel()
    cancelled.result()
    driver.eventually(lambda now: now.queued == 1)
    running.finish()
    assert following.result().status == 200
    assert not cancelled.entered.is_set()
    free(driver)


@pytest.mark.drivers("asgi", "asgi-uvloop")
def test_cancelled_in_the_moment_of_the_grant_loses_no_slot(driver: Driver):
    """Whoever wins, the slot is owned once or free."""
    driver.build(Gate(1, max_queue=1, max_wait=20.0))
    for _ in range(25):
        running = driver.send(HOLD).paused()
        waiting = driver.send()
        driver.eventually(lambda now: now.queued == 1)
        running.go()
        waiting.cancel()
        running.result()
        waiting.result()
        assert driver.eventually(lambda now: now.inflight == 0).queued == 0
    free(driver)
