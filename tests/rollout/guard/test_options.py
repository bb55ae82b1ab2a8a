"""The options of the guard."""

from __future__ import annotations

import pytest

from resilience_mw import ConfigError
from resilience_mw.core.rollout.comparison import RolloutGuard

WRONG = [
    ({"window": 0}, "guard.window must be a number of seconds > 0, got 0"),
    ({"window": float("nan")}, "guard.window must be a number of seconds > 0, got nan"),
    ({"window": float("inf")}, "guard.window must be a number of seconds > 0, got inf"),
    ({"window": True}, "guard.window must be a number of seconds > 0, got True"),
    ({"window": "30"}, "guard.window must be a number of seconds > 0, got '30'"),
    ({"min_samples": 0}, "guard.min_samples must be an integer >= 1, got 0"),
    ({"min_samples": 2.5}, "guard.min_samples must be an integer >= 1, got 2.5"),
    ({"confidence": 1}, "guard.confidence must be between 0.5 and 1, got 1"),
    ({"confidence": 0.2}, "guard.confidence must be between 0.5 and 1, got 0.2"),
    ({"max_error_increase": 1.0}, "guard.max_error_increase must be between 0 and 1, got 1.0"),
    ({"error_ceiling": -0.1}, "guard.error_ceiling must be between 0 and 1, got -0.1"),
    ({"max_latency_ratio": 0.9}, "guard.max_latency_ratio must be a number >= 1, got 0.9"),
    ({"latency_slack": -1}, "guard.latency_slack must be a number of seconds >= 0, got -1"),
    ({"baseline_age": None}, "guard.baseline_age must be a number of seconds >= 0, got None"),
]


@pytest.mark.parametrize(("options", "message"), WRONG, ids=lambda value: str(value)[:40])
def test_a_wrong_value_is_told(options, message):
    """The option, the rule and the value, on one line."""
    with pytest.raises(ConfigError) as raised:
        RolloutGuard(**options)
    assert str(raised.value) == message


def test_edges_are_allowed():
    """No tolerance at all, and a window of any length."""
    RolloutGuard(
        window=1, min_samples=1, max_error_increase=0, max_latency_ratio=1, latency_slack=0
    )
