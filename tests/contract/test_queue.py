"""Who waits, in what order, and how a wait ends."""

from __future__ import annotations

import threading

import pytest

from resilience_mw.core import DeadlinePolicy, Gate, HealthPolicy

from .drivers import Driver
from .script import HOLD, WAIT, Call

BUSY = b"Service Busy"


def queued(driver: Driver, count: int) -> None:
    """Wait until that many requests wait."""
    driver.eventually(lambda now: now.queued == count)


def idle(driver: Driver, admitted: int) -> None:
    """Check that everything is given back, and that nobody was counted twice."""
    snapshot = driver.eventually(lambda now: now.inflight == 0)
    assert (snapshot.queued, snapshot.admitted) == (0, admitted)


def test_waiting_requests_are_served_in_the_order_they_came(driver: Driver):
    """First come, first served, one for each slot that is freed."""
    driver.build(Gate(1, max_queue=5, max_wait=WAIT))
    running = driver.send(HOLD).paused()
    waiting = []
    for count in range(1, 6):
        waiting.append(driver.send(HOLD))
        queued(driver, count)
    for left, following in enumerate(waiting):
        assert not any(call.entered.is_set() for call in waiting[left:])
        assert running.finish().body == b"ok"
        running = following.paused()
        assert driver.snapshot().inflight == 1
    assert running.finish().body == b"ok"
    idle(driver, 6)


def test_nobody_overtakes_who_waits(driver: Driver):
    """A freed slot belongs to the head of the queue before anybody else can ask for it."""
    driver.build(Gate(1, max_queue=1, max_wait=WAIT))
    running = driver.send(HOLD).paused()
    waiting = driver.send(HOLD)
    queued(driver, 1)
    running.finish()
    newcomer = driver.send(HOLD)
    waiting.paused()
    assert not newcomer.entered.is_set()
    waiting.finish()
    newcomer.paused().finish()


def test_a_full_queue_refuses(driver: Driver):
    """Beyond the queue nobody waits."""
    driver.build(Gate(1, max_queue=2, max_wait=WAIT))
    running = driver.send(HOLD).paused()
    waiting = [driver.send(), driver.send()]
    queued(driver, 2)
    refused = driver.send()
    response = refused.result()
    assert (response.status, response.body) == (503, BUSY)
    assert not refused.entered.is_set()
    assert driver.snapshot().refused == {"queue_full": 1}
    running.finish()
    assert [call.result().status for call in waiting] == [200, 200]
    idle(driver, 3)


def test_a_wait_that_takes_too_long_is_refused(driver: Driver):
    """After max_wait the answer is 503; the slot that comes free later is not lost."""
    driver.build(Gate(1, max_queue=2, max_wait=0.03))
    running = driver.send(HOLD).paused()
    late = driver.send()
    response = late.result()
    assert (response.status, response.body) == (503, BUSY)
    assert response.header("retry-after") == "1"
    assert not late.entered.is_set()
    snapshot = driver.snapshot()
    assert (snapshot.refused, snapshot.queued) == ({"queue_timeout": 1}, 0)
    running.finish()
    driver.eventually(lambda now: now.inflight == 0)
    assert driver.send().result().status == 200
    idle(driver, 2)


def test_a_request_whose_deadline_passes_in_the_queue_is_answered_then(driver: Driver):
    """504 at the deadline: the queue's own patience cannot lengthen it."""
    driver.build(DeadlinePolicy(0.05, receive_timeout=0), Gate(1, max_queue=2, max_wait=WAIT))
    gate = driver.guard.policies[1]
    gate.inflight += 1  # somebody who has no deadline
    late = driver.send()
    response = late.result()
    assert (response.status, response.body) == (504, b"Gateway Timeout")
    assert not late.entered.is_set()
    assert driver.snapshot().refused == {"deadline": 1}
    gate.inflight -= 1
    assert driver.send().result().status == 200


@pytest.mark.parametrize("leaver", [0, 1, 2])
def test_a_client_that_leaves_the_queue_is_forgotten(driver: Driver, leaver: int):
    """Its handler never runs, nothing is counted as refused, and the others move up."""
    driver.build(Gate(1, max_queue=3, max_wait=WAIT))
    running = driver.send(HOLD).paused()
    waiting = []
    for count in (1, 2, 3):
        waiting.append(driver.send(HOLD))
        queued(driver, count)
    gone = waiting.pop(leaver).leave()
    queued(driver, 2)
    for following in waiting:
        running.finish()
        running = following.paused()
    running.finish()
    gone.result()
    assert not gone.entered.is_set()
    idle(driver, 3)
    assert driver.snapshot().refused == {}


def test_the_last_in_the_queue_may_leave_and_nothing_is_lost(driver: Driver):
    """An empty queue afterwards, and a free slot once the only request has ended."""
    driver.build(Gate(1, max_queue=1, max_wait=WAIT))
    running = driver.send(HOLD).paused()
    gone = driver.send().leave()
    gone.result()
    queued(driver, 0)
    running.finish()
    assert driver.eventually(lambda now: now.inflight == 0).admitted == 1
    assert driver.send().result().status == 200
    assert not gone.entered.is_set()


def test_leaving_in_the_moment_of_the_grant_loses_no_slot(driver: Driver):
    """Whoever wins, the slot is owned once or free."""
    driver.build(Gate(1, max_queue=1, max_wait=WAIT))
    for _ in range(25):
        running = driver.send(HOLD).paused()
        waiting = driver.send()
        queued(driver, 1)
        together = threading.Barrier(2)

        def leave(waiting: Call = waiting, together: threading.Barrier = together) -> None:
            together.wait(WAIT)
            waiting.leave()

        leaver = threading.Thread(target=leave)
        leaver.start()
        together.wait(WAIT)
        running.finish()
        leaver.join(WAIT)
        waiting.result()
        assert driver.eventually(lambda now: now.inflight == 0).queued == 0
    assert driver.send().result().status == 200
    idle(driver, driver.snapshot().admitted)


def test_draining_refuses_who_waits_and_lets_nobody_wait_any_more(driver: Driver):
    """Those who run go on; a free slot is still given."""
    driver.build(HealthPolicy(), Gate(1, max_queue=5, max_wait=WAIT))
    running = driver.send(HOLD).paused()
    waiting = [driver.send(), driver.send()]
    queued(driver, 2)
    driver.drain()
    for call in (*waiting, driver.send()):
        response = call.result()
        assert (response.status, response.body) == (503, BUSY)
        assert not call.entered.is_set()
    assert driver.snapshot().refused == {"draining": 3}
    assert running.finish().body == b"ok"
    driver.eventually(lambda now: now.inflight == 0)
    assert driver.send().result().status == 200
    idle(driver, 2)


def test_a_request_may_wait_in_two_queues(driver: Driver):
    """The second wait begins when the first is over, with its own patience."""
    driver.build(
        Gate(2, max_queue=5, max_wait=WAIT, name="outer"),
        Gate(1, max_queue=5, max_wait=WAIT, name="inner"),
    )
    calls = [driver.send(HOLD).paused()]
    calls.append(driver.send(HOLD))
    driver.eventually(lambda now: now.policies[1].queued == 1)  # type: ignore[attr-defined]
    calls.append(driver.send(HOLD))
    driver.eventually(lambda now: now.policies[0].queued == 1)  # type: ignore[attr-defined]
    assert [call.entered.is_set() for call in calls] == [True, False, False]
    calls[0].finish()
    calls[1].paused().finish()
    calls[2].paused().finish()
    idle(driver, 3)


def test_leaving_the_second_queue_frees_the_slot_of_the_first(driver: Driver):
    """What a request holds elsewhere comes back with it."""
    driver.build(Gate(2, name="outer"), Gate(1, max_queue=5, max_wait=WAIT, name="inner"))
    running = driver.send(HOLD).paused()
    gone = driver.send()
    queued(driver, 1)
    gone.leave().result()
    driver.eventually(lambda now: now.policies[0].inflight == 1)  # type: ignore[attr-defined]
    running.finish()
    idle(driver, 1)
    assert not gone.entered.is_set()
