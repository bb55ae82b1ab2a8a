"""Whoever only says to be one of us is not told what stands behind readiness."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from resilience_mw import Config, Health, protect


async def app(scope, receive, send):
    """Answer nothing: probes come first."""


@pytest.mark.parametrize(
    ("headers", "told"),
    [({}, True), ({"X-Forwarded-For": "10.0.0.9"}, False)],
    ids=["true", "said"],
)
def test_details_are_not_for_an_address_out_of_a_header(headers, told):
    """The server took it from a header that every client can write."""
    guard = protect(app, Config(health=Health(checks={"yes": bool}, trusted=("10.0.0.0/8",))))
    client = TestClient(guard, client=("10.0.0.9", 1))
    answer = client.get("/readyz?verbose", headers=headers)
    assert ("[" in answer.text) is told
