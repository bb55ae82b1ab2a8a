"""Deadlines: what sets them, what shortens them, and what is ignored."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resilience_mw.core import DeadlinePolicy, Reply
from resilience_mw.core.deadline import LONGEST, parse_seconds

from .requests import Request

HEADER = "X-Request-Timeout"


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("2.5", 2.5),
        ("2.5s", 2.5),
        ("250ms", 0.25),
        (" 3 ", 3.0),
        ("1e1", 10.0),
        ("+4", 4.0),
        ("86400", 86_400.0),
        ("86400000ms", 86_400.0),
        ("0.001", 0.001),
    ],
)
def test_seconds_and_milliseconds_are_understood(value: str, seconds: float):
    """With or without the unit, with blanks around."""
    assert parse_seconds(value) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "value",
    [
        "", " ", "s", "ms", "abc", "1m", "1h", "5S", "0", "0.0", "0ms", "-1", "-0", "-1ms",
        "nan", "NaN", "-nan", "inf", "-inf", "Infinity", "1e308", "1e309", "-1e308", "1e-400",
        "86400.1", "86401s", "1_000", "0x10", "1,2", "1;2", "1 2", "1s1", "1ss", "1.2.3",
        "١٢", "２", "½", "5\x00", "\xa05\xa0\xff", "é", "😀", "9" * 33, "1" + "0" * 10_000,
        " " * 10_000 + "nan",
    ],
)  # fmt: skip
def test_what_is_malformed_or_absurd_is_none(value: str):
    """Not a number, not finite, not positive, more than a day, not ASCII, too long."""
    assert parse_seconds(value) is None


@given(st.text() | st.text("0123456789.+-eE_smnaif \t", max_size=12))
def test_any_text_is_a_sane_number_or_none(value: str):
    """It never raises, and never returns what would be no deadline."""
    seconds = parse_seconds(value)
    assert seconds is None or 0.0 < seconds <= LONGEST


def enter(policy: DeadlinePolicy, header: str | None = None, **facts: float) -> Request:
    """Send a request that is let in."""
    request = Request(100.0, headers={} if header is None else {HEADER: header})
    for name, value in facts.items():
        setattr(request, name, value)
    assert policy.enter(request) is None
    return request


@pytest.mark.parametrize(
    ("timeout", "header", "deadline"),
    [
        (30.0, None, 130.0),
        (30.0, "2", 102.0),
        (30.0, "250ms", 100.25),
        (30.0, "31", 130.0),
        (30.0, "80000", 130.0),
        (None, None, None),
        (None, "2", 102.0),
        (None, "86400", 100.0 + 86_400.0),
    ],
)
def test_a_header_shortens_but_never_lengthens(
    timeout: float | None, header: str | None, deadline: float | None
):
    """Without a timeout of ours it sets one."""
    policy = DeadlinePolicy(timeout, header=HEADER)
    assert enter(policy, header).deadline == deadline
    assert policy.ignored_headers == 0


@pytest.mark.parametrize("header", ["soon", "-1", "0", "nan", "inf", "1e308", "5,6", "9" * 5000])
@pytest.mark.parametrize("timeout", [30.0, None])
def test_a_bad_header_is_ignored_and_counted(timeout: float | None, header: str):
    """The request is served as if it had none."""
    policy = DeadlinePolicy(timeout, header=HEADER)
    assert enter(policy, header).deadline == (None if timeout is None else 130.0)
    assert policy.snapshot().ignored_headers == 1


def test_a_header_that_nobody_trusts_is_not_read():
    """Unless its name was given."""
    policy = DeadlinePolicy(30.0)
    assert enter(policy, "2").deadline == 130.0


def test_what_is_late_on_arrival_is_answered_at_once():
    """What it waited before we saw it counts."""
    policy = DeadlinePolicy(5.0)
    assert enter(policy, queue_wait=2.0).deadline == 103.0
    late = Request(100.0)
    late.queue_wait = 5.0
    reply = policy.enter(late)
    assert isinstance(reply, Reply)
    assert (reply.status, reply.body, reply.reason) == (504, b"Gateway Timeout", "deadline")
    assert policy.snapshot().expired == 1


def test_what_became_late_in_a_queue_further_out_is_answered_at_once():
    """The deadline counts from arrival, wherever the request has been since."""
    policy = DeadlinePolicy(5.0)
    assert enter(policy, admitted=104.0).deadline == 105.0
    late = Request(100.0)
    late.admitted = 106.0
    assert isinstance(policy.enter(late), Reply)


def test_the_nearest_of_several_deadlines_is_in_force():
    """In whichever order they come."""
    for first, second in ((5.0, 9.0), (9.0, 5.0)):
        request = enter(DeadlinePolicy(first))
        assert DeadlinePolicy(second).enter(request) is None
        assert request.deadline == 105.0


def test_a_snapshot_tells_timeout_and_counts():
    """Frozen numbers."""
    policy = DeadlinePolicy(2.0)
    policy.overrun, policy.unreceived = 3, 4
    snapshot = policy.snapshot()
    assert (snapshot.timeout, snapshot.expired, snapshot.overrun) == (2.0, 0, 3)
    assert (snapshot.unreceived, snapshot.ignored_headers) == (4, 0)
