"""Instances are replaced behind real balancers, and nobody notices."""

from __future__ import annotations

import shutil

import pytest

from benchmarks.rolling_deploy import SETUPS, roll

TRIED = [
    ("haproxy-once", "uvicorn"),
    ("haproxy-once", "gunicorn asgi"),
    ("haproxy-once", "gunicorn sync"),
    ("nginx", "gunicorn gthread"),
]


@pytest.mark.parametrize(("kind", "name"), TRIED)
def test_no_request_fails_while_instances_are_replaced(kind, name):
    """On kept connections and on new ones; HAProxy gives no request a second chance here."""
    program = kind.partition("-")[0]
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    seen = roll(SETUPS[name], kind, ours=True, rounds=1, rate=60.0)
    assert seen.replaced == 2
    assert seen.sent > 600
    assert seen.failed == {}
