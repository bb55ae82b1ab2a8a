"""The spellings of X-Request-Start that proxies use."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resilience_mw.signals.request_start import MAX_WAIT, request_start

NOW = 1_700_000_000.0


@pytest.mark.parametrize(
    "value",
    [
        "1699999999.5",
        "t=1699999999.5",
        "T=1699999999.500",
        "t=1699999999500",
        "1699999999500",
        "t=1699999999500ms",
        "t=1699999999500.0ms",
        "t=1699999999500000",
        "1699999999500000us",
        "t=1699999999500000000",
        "1699999999500000000ns",
        "t=1699999999.5s",
        "  t=1699999999.5  ",
        "t=1699999000.0, t=1699999999.5",
        "nonsense,1699999999.5",
        b"t=1699999999.5",
    ],
)
def test_every_usual_spelling(value):
    """Seconds (nginx), ms (Heroku), us (Apache) and ns, with and without t= and a unit."""
    assert request_start(value, NOW) == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "t=",
        "now",
        "-1",
        "t=-1699999999.5",
        "1e9",
        "nan",
        "inf",
        "0x65",
        "t=t=1699999999.5",
        "t=1699999999.5h",
        "1699999999.5.5",
        "1699999999.5;",
        "t= 1699999999.5",
        "\u0661" * 10,
        "1" * 21,
        "1" * 100_000,
        b"\xff\xfe1699999999.5",
        "t=1699999999.5,",
        "0",
        "1",
        "t=1500000000",
        "t=1699990000.0",
        "t=1700000002.0",
        "t=17000000020000000000",
    ],
)
def test_malformed_absurd_or_future(value):
    """Whatever is no time of the last hour is ignored."""
    assert request_start(value, NOW) is None


def test_a_clock_slightly_ahead_is_no_wait():
    """Half a second in the future is a skewed clock, and no waiting."""
    assert request_start("t=1700000000.5", NOW) == 0.0


def test_very_long_waits_are_clamped():
    """Ten minutes read as the longest wait there is."""
    assert request_start("t=1699999400.0", NOW) == MAX_WAIT


@given(st.one_of(st.text(max_size=200), st.binary(max_size=200)))
def test_no_value_raises(value):
    """Any header gives a wait within bounds, or none."""
    waited = request_start(value, NOW)
    assert waited is None or 0.0 <= waited <= MAX_WAIT


@given(st.floats(0.0, 299.0), st.sampled_from([("", 1), ("ms", 1e3), ("us", 1e6)]))
def test_round_trip(waited, unit):
    """A start written in any unit is read back to the millisecond."""
    name, scale = unit
    started = (NOW - waited) * scale
    assert request_start(f"t={started:.3f}{name}", NOW) == pytest.approx(waited, abs=2e-3)
