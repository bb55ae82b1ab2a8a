"""Answers in the protocol with a status that nobody has registered."""

from __future__ import annotations

import pytest

from .client import get, launch, times


@pytest.mark.parametrize("http", ["h11", "httptools"])
def test_a_status_of_ones_own_is_answered(serve, http):
    """Such as what a balancer is to be told while the next tier has no answer."""
    env = {
        "RESILIENCE_HEALTH_CHECKS": "next=http://127.0.0.1:1/",
        "RESILIENCE_HEALTH_FORWARD_PATH": "/status",
        "RESILIENCE_HEALTH_FAILURE_STATUS": "499",
    }
    server = serve(launch(*times(), http=http, env=env))
    get(server, "/")  # now the loop is known, and the guard is asked before there is a task
    assert [get(server, "/status").status for _ in range(3)] == [499] * 3
    assert get(server, "/livez").status == 200
