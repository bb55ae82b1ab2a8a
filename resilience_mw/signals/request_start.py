"""`X-Request-Start` and `X-Queue-Start`: when a proxy first saw the request, by its own clock."""

from __future__ import annotations

import re

MAX_WAIT = 300.0
"""Longest wait reported, in seconds; whoever waited longer is long gone."""

_MAX_SKEW = 1.0
"""Seconds that a proxy's clock may be ahead of ours."""

_ABSURD = 3600.0
"""A start further in the past than this (seconds) is a mistake in the header, not a wait."""

_MAX_LENGTH = 128

_SPELLING = re.compile(r"(?:t=)?([0-9]{1,20}(?:\.[0-9]{1,9})?)(s|ms|us|ns)?", re.ASCII)

_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def request_start(value: str | bytes, now_wall: float) -> float | None:
    """Return the seconds since the moment that such a header names, in [0, `MAX_WAIT`].

    Understood: epoch seconds (nginx `t=${msec}`), milliseconds (Heroku, HAProxy), microseconds
    (Apache `t=%t`) and nanoseconds, told apart by size, with or without ``t=`` and a unit. Of
    several values joined by commas the last counts: it is from the proxy nearest to us.
    `None`: malformed, more than an hour old, or in the future by more than a clock is off.

    Args:
        value: the header's value, as it came.
        now_wall: the time now by the wall clock (`time.time()`).
    """
    text = value.decode("latin-1") if isinstance(value, bytes) else value
    if len(text) > _MAX_LENGTH:
        return None
    match = _SPELLING.fullmatch(text.rpartition(",")[2].strip().lower())
    if match is None:
        return None
    started = float(match[1])
    waited = now_wall - started * (_UNITS[match[2]] if match[2] else _unit(started))
    if not -_MAX_SKEW <= waited <= _ABSURD:
        return None
    return min(MAX_WAIT, max(0.0, waited))


def _unit(started: float) -> float:
    """Return what one unit of an epoch time is in seconds, by its size.

    Each bound is the year 5138 in its unit and 1973 in the next smaller one.
    """
    if started < 1e11:
        return 1.0
    if started < 1e14:
        return 1e-3
    return 1e-6 if started < 1e17 else 1e-9
