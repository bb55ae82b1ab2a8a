"""What an upstream check takes."""

from __future__ import annotations

from resilience_mw.health import UpstreamCheck


def test_it_asks_as_often_as_a_balancer_does():
    """Once a second; not the five seconds of other checks, unless told so."""
    assert UpstreamCheck("http://127.0.0.1:1/").interval == 1.0
    assert UpstreamCheck("http://127.0.0.1:1/", interval=7).interval == 7.0
