"""Probes and the life of a process."""

from __future__ import annotations

import itertools

import pytest

from resilience_mw.core import HealthPolicy, Lifecycle, Reply, State

from .requests import Request

TABLE = {
    State.STARTING: (200, 503, 503),
    State.READY: (200, 200, 200),
    State.DRAINING: (200, 503, 200),
    State.STOPPED: (200, 503, 200),
}


def probe(policy: HealthPolicy, path: str, method: str = "GET") -> Reply:
    """Send a probe."""
    reply = policy.enter(Request(path=path, method=method))
    assert isinstance(reply, Reply)
    return reply


@pytest.mark.parametrize("state", State)
def test_each_probe_follows_the_state(state: State):
    """Liveness never does: whoever fails it is killed."""
    policy = HealthPolicy(lifecycle=Lifecycle(state))
    answers = [probe(policy, path) for path in ("/livez", "/readyz", "/startupz")]
    assert tuple(answer.status for answer in answers) == TABLE[state]
    for answer in answers:
        assert answer.reason is None
        assert ("Cache-Control", "no-store") in answer.headers
    snapshot = policy.snapshot()
    assert (snapshot.state, snapshot.probes) == (state.name.lower(), 3)


def test_bodies_say_why():
    """For the person who asks with a browser."""
    policy = HealthPolicy()
    bodies = [probe(policy, path).body for path in ("/livez", "/readyz", "/startupz")]
    assert bodies == [b"ok", b"not ready", b"starting"]


@pytest.mark.parametrize("path", ["/", "/livez/", "/livezz", "/a/livez", "livez", "/LIVEZ", ""])
def test_only_the_exact_path_is_a_probe(path: str):
    """Everything else is the app's."""
    policy = HealthPolicy()
    assert policy.enter(Request(path=path)) is None
    assert policy.probes == 0


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "get", ""])
def test_only_get_and_head_are_answered(method: str):
    """The others are told so, and not counted."""
    policy = HealthPolicy()
    reply = probe(policy, "/livez", method)
    assert reply.status == 405
    assert ("Allow", "GET, HEAD") in reply.headers
    assert policy.probes == 0


def test_paths_can_be_chosen():
    """The defaults are then the app's."""
    policy = HealthPolicy("/a", "/b", "/c")
    assert [probe(policy, path).status for path in ("/a", "/b", "/c")] == [200, 503, 503]
    assert policy.enter(Request(path="/livez")) is None


def test_draining_turns_readiness_for_good():
    """A late sign of having started does not turn it back."""
    policy = HealthPolicy()
    policy.lifecycle.advance(State.READY)
    policy.drain()
    assert policy.lifecycle.advance(State.READY) is False
    assert probe(policy, "/readyz").status == 503


@pytest.mark.parametrize(("before", "after"), list(itertools.product(State, State)))
def test_a_life_only_goes_forward(before: State, after: State):
    """A step back changes nothing, and says so."""
    lifecycle = Lifecycle(before)
    assert lifecycle.advance(after) is (after > before)
    assert lifecycle.state is max(before, after)


@pytest.mark.parametrize("state", State)
def test_a_new_life_begins_only_after_the_end(state: State):
    """One process may run one app several times, as tests do."""
    lifecycle = Lifecycle(state)
    assert lifecycle.restart() is (state is State.STOPPED)
    assert lifecycle.state is (State.STARTING if state is State.STOPPED else state)
