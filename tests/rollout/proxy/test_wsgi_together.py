"""A roll-out to an upstream, with gates, deadlines and probes around it: WSGI."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from resilience_mw import RolloutRule
from resilience_mw.rollout.proxy.wsgi import proxy
from resilience_mw.wsgi import (
    ConcurrencyLimitMiddleware,
    DeadlineMiddleware,
    HealthMiddleware,
    RolloutMiddleware,
)
from tests.wsgi.harness import Response, begin, call, until

from .asking import nobody

RULES = [RolloutRule("all", prefix="/", percent=50, by="user", header="x-user")]
EVERYBODY = [RolloutRule("all", prefix="/", percent=100)]


def ask(app: Any, path: str, user: str = "", **facts: Any) -> Response:
    """Send a user's request, and read its answer."""
    response = begin(app, path, HTTP_X_USER=user, **facts)
    response.read()
    return response


def users(app: Any) -> tuple[str, str]:
    """Return a user of the old and one of the new stack."""
    found: dict[str, str] = {}
    for number in range(50):
        response = ask(app, "/quick", str(number))
        assert response.status == 200
        found[dict(response.headers)["X-Variant"]] = str(number)
    return found["old"], found["new"]


class Old:
    """The old stack: `/hang` is held, the rest answered at once."""

    def __init__(self) -> None:
        self.entered = 0
        self.go = threading.Event()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        """Serve one request."""
        if environ["PATH_INFO"] == "/hang":
            self.entered += 1
            self.go.wait(10)
        start_response("200 OK", [])
        return [b"old"]


class Held:
    """A request that hangs in its stack, in a thread of its own, until its client leaves."""

    def __init__(self, app: Any, user: str, entered: Callable[[], int]) -> None:
        before = entered()
        self.client, self._server = socket.socketpair()
        facts = {"HTTP_X_USER": user, "gunicorn.socket": self._server}
        self._thread = threading.Thread(target=call, args=(app, "/hang"), kwargs=facts)
        self._thread.start()
        until(lambda: entered() > before)

    def leave(self) -> None:
        """Close the client's end, and wait for the thread."""
        self.client.close()
        self._thread.join(10)
        assert not self._thread.is_alive()
        self._server.close()


@pytest.mark.parametrize("inside", [False, True], ids=["outside", "inside"])
def test_a_gate_counts_what_is_behind_it(upstream, seen, inside):
    """Outside of the roll-out both stacks together, inside each by itself."""
    old, new = Old(), proxy(upstream.url)
    app: Any
    if inside:
        app = RolloutMiddleware(
            ConcurrencyLimitMiddleware(old, max_concurrent_requests=1),
            new=ConcurrencyLimitMiddleware(new, max_concurrent_requests=1),
            rules=RULES,
            variant_header="X-Variant",
        )
    else:
        rollout = RolloutMiddleware(old, new=new, rules=RULES, variant_header="X-Variant")
        app = ConcurrencyLimitMiddleware(rollout, max_concurrent_requests=1)
    old_user, new_user = users(app)
    first = Held(app, new_user, lambda: seen("entered /hang"))
    assert ask(app, "/quick", new_user).status == 503
    assert ask(app, "/quick", old_user).status == (200 if inside else 503)
    first.leave()
    second = Held(app, old_user, lambda: old.entered)
    assert ask(app, "/quick", old_user).status == 503
    assert ask(app, "/quick", new_user).status == (200 if inside else 503)
    old.go.set()
    second.leave()
    new.close()


def test_deadlines_hold(upstream, seen):
    """The thread is free again in time, and the upstream is told that nobody waits."""
    before = seen("left /hang")
    new = proxy(upstream.url)
    rollout = RolloutMiddleware(Old(), new=new, rules=EVERYBODY)
    assert ask(DeadlineMiddleware(rollout, timeout=0.3), "/hang").status == 504
    until(lambda: seen("left /hang") > before)
    new.close()


def test_a_client_that_leaves_ends_the_call_of_the_new_stack(upstream, seen):
    """Through a gate, a deadline and the roll-out."""
    before = seen("left /hang")
    new = proxy(upstream.url)
    rollout = RolloutMiddleware(Old(), new=new, rules=EVERYBODY)
    gate = ConcurrencyLimitMiddleware(rollout, max_concurrent_requests=1)
    app = DeadlineMiddleware(gate, timeout=30)
    Held(app, "", lambda: seen("entered /hang")).leave()
    until(lambda: seen("left /hang") > before)
    assert ask(app, "/echo").status == 200
    new.close()


def test_probes_are_answered_on_this_side():
    """Whoever is behind the proxy, and if it is nobody."""
    app = HealthMiddleware(RolloutMiddleware(Old(), new=nobody(), rules=EVERYBODY))
    assert ask(app, "/any").status == 502
    for path in ("/livez", "/readyz"):
        assert ask(app, path).status == 200


def test_what_nobody_began_to_answer_goes_back_once():
    """Where nothing is lost by it; a POST is told the truth."""
    app = RolloutMiddleware(Old(), new=nobody(), rules=EVERYBODY, fallback=True)
    assert call(app, "/any") == (200, b"old")
    assert call(app, "/any", method="POST")[0] == 502
