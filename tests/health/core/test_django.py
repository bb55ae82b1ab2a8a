"""Django's middleware with checks."""

from __future__ import annotations

from typing import Any

import pytest

from resilience_mw import Backpressure, Config, Deadline, Health
from resilience_mw.core import HealthPolicy
from resilience_mw.django.conf import enforced

OFF: dict[str, Any] = {
    "backpressure": Backpressure(enabled=False),
    "deadline": Deadline(timeout=None, receive_timeout=0),
}


def test_the_middleware_is_not_used_for_probes_alone():
    """They are left to the project."""
    assert enforced(Config(**OFF)) == []


def test_it_is_used_for_a_port_of_their_own():
    """Which would else be open nowhere, and every probe there refused."""
    (policy,) = enforced(Config(health=Health(port=9001), **OFF))
    assert isinstance(policy, HealthPolicy)
    assert policy.apart is not None


@pytest.mark.parametrize(
    "health",
    [
        Health(checks={"up": "tcp://127.0.0.1:1"}),
        Health(checks={"up": "http://127.0.0.1:1/"}, forward_path="/status"),
    ],
)
def test_it_is_used_for_checks(health: Health):
    """Whoever configures them wants to have them asked."""
    (policy,) = enforced(Config(health=health, **OFF))
    assert isinstance(policy, HealthPolicy)
    assert policy.snapshot().checks
