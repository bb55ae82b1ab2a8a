"""What a probe is answered, and whom more is told."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from resilience_mw.core import CheckResult, HealthPolicy, Lifecycle, Reply, State
from resilience_mw.health.details import DOCUMENT, Details
from tests.core.requests import Request

PASSING = CheckResult("db", True, True, "", 100.0, 1_700_000_000.0)
FAILING = CheckResult("next:tier", False, True, "timeout", 100.0, 1_700_000_000.0)
SOFT = CheckResult("mail", False, False, "status 500", 100.0, 1_700_000_000.0, 500)
UNKNOWN = CheckResult("new", False, True, "not asked yet", 100.0)


class Known:
    """Stands for a monitor that knows this."""

    def __init__(self, *results: CheckResult, forwarded: int | None = None) -> None:
        self.forwarded = forwarded
        self.touched = 0
        self._results = results

    known = True

    @property
    def ready(self) -> bool:
        return all(result.passing for result in self._results if result.critical)

    def results(self) -> tuple[CheckResult, ...]:
        return self._results

    def touch(self) -> None:
        self.touched += 1

    def expect(self) -> None: ...

    def settle(self) -> None: ...

    def start(self, loop: Any = None) -> None: ...

    def close(self) -> None: ...

    def watch(self, counts: Any) -> None: ...


def policy(*results: CheckResult, state: State = State.READY, **options: Any) -> HealthPolicy:
    """Return a policy in this state, with checks that are known to stand like this."""
    options.setdefault("checks", Known(*results))
    return HealthPolicy(lifecycle=Lifecycle(state), **options)


def ask(policy: HealthPolicy, path: str, method: str = "GET", **more: Any) -> Reply:
    """Ask a probe."""
    reply = policy.answer(path, method, **more)
    assert reply is not None
    return reply


@pytest.mark.parametrize(
    ("results", "status"),
    [
        ((), 200),
        ((PASSING,), 200),
        ((PASSING, FAILING), 503),
        ((SOFT,), 200),
        ((UNKNOWN,), 503),
    ],
)
@pytest.mark.parametrize("state", State)
def test_readiness_needs_the_state_and_every_critical_check(
    results: tuple[CheckResult, ...], status: int, state: State
):
    """Liveness never looks, and neither does the start-up probe."""
    health = policy(*results, state=state)
    assert ask(health, "/livez").status == 200
    assert ask(health, "/readyz").status == (status if state is State.READY else 503)
    assert ask(health, "/startupz").status == (503 if state is State.STARTING else 200)
    snapshot = health.snapshot()
    assert snapshot.ready is (ask(health, "/readyz").status == 200)
    assert snapshot.checks == results


def test_checks_are_touched_only_while_serving():
    """Whoever starts or stops must not begin to ask."""
    known = Known(PASSING)
    for state in State:
        ask(HealthPolicy(lifecycle=Lifecycle(state), checks=known), "/readyz")
    assert known.touched == 1


@pytest.mark.parametrize(
    ("state", "forwarded", "status"),
    [
        (State.READY, 200, 200),
        (State.READY, 500, 500),
        (State.READY, 204, 204),
        (State.READY, 304, 304),
        (State.READY, 599, 599),
        (State.READY, None, 404),
        (State.STARTING, 200, 404),
        (State.DRAINING, 200, 404),
    ],
)
def test_the_forwarding_path_gives_the_next_tiers_status(
    state: State, forwarded: int | None, status: int
):
    """Or the chosen failure: without a fresh one, and while this tier is not to be used itself."""
    checks = Known(FAILING, forwarded=forwarded)
    health = policy(state=state, checks=checks, forward_path="/status", failure_status=404)
    reply = ask(health, "/status")
    assert reply.status == status
    assert ask(health, "/status") is reply
    content = {"Content-Type", "Content-Length"} & {name for name, _ in reply.headers}
    assert bool(content) is (status not in (204, 304))
    assert ask(health, "/status", "POST").status == 405
    assert ask(health, "/readyz").status == 503  # readiness is another question


def test_without_forwarding_there_is_no_such_path():
    """It is the app's."""
    assert policy(PASSING).answer("/status", "GET") is None
    assert policy(PASSING).answer("/readyz/", "GET") is None


def test_details_as_kubernetes_lists_them():
    """One line a check, and a verdict."""
    health = policy(PASSING, FAILING, SOFT, details=Details(["*"]))
    assert ask(health, "/readyz", query="verbose").body.decode() == (
        "[+]lifecycle ok: ready\n"
        "[+]db ok\n"
        "[-]next:tier failed: timeout\n"
        "[-]mail failed: status 500 (not critical)\n"
        "readyz check failed\n"
    )
    assert ask(health, "/livez", query="a=1&verbose=1").body.decode() == (
        "[+]lifecycle ok: ready\nlivez check passed\n"
    )
    draining = policy(PASSING, state=State.DRAINING, details=Details(["*"]))
    assert ask(draining, "/readyz", query="verbose").body.decode() == (
        "[-]lifecycle failed: draining\n[+]db ok\nreadyz check failed\n"
    )


@pytest.mark.parametrize(
    ("results", "status"),
    [((PASSING,), "pass"), ((PASSING, SOFT), "warn"), ((FAILING, SOFT), "fail")],
)
def test_details_as_a_health_document(results: tuple[CheckResult, ...], status: str):
    """In the form of the draft, with its media type."""
    health = policy(*results, details=Details(["*"]))
    reply = ask(health, "/readyz", accept="text/html, application/health+json;q=0.9")
    assert ("Content-Type", DOCUMENT) in reply.headers
    document = json.loads(reply.body)
    assert document["status"] == status
    assert reply.status == (503 if status == "fail" else 200)
    assert list(document["checks"]) == [result.name for result in results]
    for result in results:
        (entry,) = document["checks"][result.name]
        assert entry["time"] == "2023-11-14T22:13:20+00:00"
        assert entry.get("output", "") == result.reason
    assert "checks" not in json.loads(ask(health, "/livez", accept=DOCUMENT).body)


@pytest.mark.parametrize(
    ("peer", "told"), [("10.1.2.3", True), ("::ffff:10.0.0.1", True), ("11.0.0.1", False)]
)
@pytest.mark.parametrize("asked", [{"query": "verbose"}, {"accept": DOCUMENT}])
def test_only_the_trusted_are_told(peer: str, told: bool, asked: dict[str, str]):
    """The others get what everybody gets, and not a word more."""
    health = policy(FAILING, details=Details(["10.0.0.0/8"]))
    plain = ask(health, "/readyz")
    assert (ask(health, "/readyz", peer=peer, **asked) is not plain) is told
    assert ask(health, "/readyz", **asked) is plain  # a Unix socket has no address
    assert ask(policy(FAILING), "/readyz", peer="10.0.0.1", **asked) is plain


def test_who_asks_is_read_only_if_that_matters():
    """Reading the peer of a request costs a system call."""

    class Probe(Request):
        @property
        def peer(self) -> str | None:
            raise AssertionError("nobody wants to know")

    assert policy(PASSING).enter(Probe(path="/readyz")) is not None
    with pytest.raises(AssertionError):
        policy(PASSING, details=Details(["unix"])).enter(Probe(path="/readyz"))


def test_many_threads_may_ask_at_once():
    """Each is answered, and each is counted."""
    health = policy(PASSING, forward_path="/status", details=Details(["*"]))

    def work() -> None:
        for _ in range(500):
            assert ask(health, "/readyz", query="verbose").status == 200
            assert ask(health, "/status").status == 503

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ask(health, "/livez")
    assert health.probes == 8 * 1000 + 1
