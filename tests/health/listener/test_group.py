"""One worker's answers and what the others say, put together."""

from __future__ import annotations

import pytest

from resilience_mw import told
from resilience_mw.config import Health
from resilience_mw.core.health import HealthPolicy
from resilience_mw.core.lifecycle import Lifecycle, State
from resilience_mw.health.listener.board import Slot
from resilience_mw.health.listener.group import Group
from resilience_mw.health.listener.request import Request


class Clock:
    """A time that is set."""

    now = 1000.0


def group(
    *others: Slot, state: State = State.READY, beat: float = 0.0, stuck_after: float = 30.0
) -> Group:
    made = Group(
        Health(stuck_after=stuck_after), lambda wanted: filter(wanted, others), lambda: Clock.now
    )
    made.policies = [HealthPolicy(lifecycle=Lifecycle(state))]
    made.beat = lambda: beat
    return made


def status(asked: Group, path: str, method: str = "GET") -> int | None:
    reply = asked.respond(Request(method, path, "", ""), None)
    return None if reply is None else reply.status


READY = Slot(1, 1, started=True, ready=True)
STARTING = Slot(1, 1)
DRAINING = Slot(1, 1, started=True)


@pytest.mark.parametrize(
    ("state", "others", "expected"),
    [
        (State.READY, (), (200, 200)),
        (State.STARTING, (), (503, 503)),
        (State.STARTING, (STARTING,), (503, 503)),
        (State.STARTING, (STARTING, READY), (200, 200)),
        (State.STARTING, (DRAINING,), (503, 200)),
        (State.DRAINING, (READY,), (200, 200)),
        (State.DRAINING, (DRAINING,), (503, 200)),
    ],
)
def test_any_worker_will_do(state, others, expected):
    """For readiness and start-up."""
    asked = group(*others, state=state)
    assert (status(asked, "/readyz"), status(asked, "/startupz")) == expected


@pytest.mark.parametrize(
    ("beat", "others", "expected"),
    [
        (0.0, (), 200),
        (999.0, (), 200),
        (970.0, (), 200),
        (969.0, (), 503),
        (999.0, (Slot(1, 1, beat=969.0, started=True),), 503),
        (999.0, (Slot(1, 1, beat=969.0),), 200),
        (999.0, (Slot(1, 1, beat=0.0, started=True),), 200),
    ],
)
def test_one_loop_that_is_stuck_is_enough(beat, others, expected):
    """Of a worker that has started, and that has a loop."""
    assert status(group(*others, beat=beat), "/livez") == expected
    assert status(group(*others, beat=beat, stuck_after=0.0), "/livez") == 200


def test_a_loop_may_be_blocked_while_the_app_starts():
    """As long as it likes: that is what the start-up probe is for."""
    assert status(group(state=State.STARTING, beat=1.0), "/livez") == 200


def test_after_a_pause_of_the_whole_process_no_loop_is_to_blame():
    """Until it has been silent for that long since."""
    asked = group(beat=900.0)
    asked.awake_since = 999.0
    assert status(asked, "/livez") == 200
    asked.awake_since = 960.0
    assert status(asked, "/livez") == 503


def test_who_is_told_to_stop_is_not_ready(monkeypatch: pytest.MonkeyPatch):
    """Although the app does not know yet; if others are ready, the server is."""
    heard: list[bool] = []
    monkeypatch.setattr(told, "_heeded", [])
    told.heed(lambda: bool(heard))
    assert status(group(), "/readyz") == 200
    heard.append(True)
    assert status(group(), "/readyz") == 503
    assert not group().ready()
    assert status(group(READY), "/readyz") == 200
    assert status(group(), "/livez") == 200


def test_what_is_no_probe():
    """Other paths are nobody's; other methods are refused, whoever is ready."""
    assert status(group(READY), "/") is None
    assert status(group(READY, state=State.STARTING), "/readyz", "POST") == 405


def test_without_an_app_nobody_has_started():
    """Before the first policy is there."""
    empty = group()
    empty.policies = []
    assert not empty.started()
    assert not empty.ready()
