"""Checks that end in ways that nobody wrote them for."""

from __future__ import annotations

import gc
import json
import time
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from werkzeug.test import Client

from resilience_mw import Config, Health, protect
from resilience_mw.core import HealthPolicy
from resilience_mw.exceptions import ConfigError
from resilience_mw.health import Check, CheckFailed, MemoryCheck, Monitor
from resilience_mw.health.details import Details
from tests.health.core.waiting import asking, only, until


def wsgi_app(environ, start_response):
    """Answer."""
    start_response("200 OK", [("Content-Length", "0")])
    return []


class Nameless(CheckFailed):
    """Has no reason at all."""

    def __init__(self) -> None:
        Exception.__init__(self)


def raises(error: BaseException) -> Callable[[], None]:
    """Return a probe that raises ``error``."""

    def probe() -> None:
        raise error

    return probe


class Unawaitable:
    """Cannot be awaited though it says so."""

    def __await__(self) -> Any:
        raise ZeroDivisionError


ODD: dict[str, tuple[Callable[[], object], str]] = {
    "empty": (raises(CheckFailed("")), "failed"),
    "blank": (raises(CheckFailed(" \n")), "failed"),
    "none": (raises(CheckFailed(None)), "failed"),  # type: ignore[arg-type]
    "object": (raises(CheckFailed(object())), "failed"),  # type: ignore[arg-type]
    "nameless": (raises(Nameless()), "failed"),
    "number": (raises(CheckFailed(500)), "500"),  # type: ignore[arg-type]
    "lines": (raises(CheckFailed("down\n[+]db ok")), "down [+]db ok"),
    "surrogate": (raises(CheckFailed("a\ud800b\x1b[31m")), "a b [31m"),
    "interrupt": (raises(KeyboardInterrupt()), "KeyboardInterrupt"),
    "exit": (raises(GeneratorExit()), "GeneratorExit"),
    "stop": (raises(StopIteration()), "StopIteration"),
    "unawaitable": (Unawaitable, "ZeroDivisionError"),
    "made": (lambda: MemoryCheck(), "returned a check"),
}


def test_no_odd_end_passes_or_writes_lines_of_its_own():
    """Whatever a reason is made of, it is shown on one line, and the check fails."""
    checks = {name: Check(probe, interval=60) for name, (probe, _) in ODD.items()}
    app = protect(wsgi_app, Config(health=Health(checks=checks, expose_details=True)))
    client = Client(app)
    try:
        until(lambda: "not asked yet" not in client.get("/readyz?verbose").text)
        lines = client.get("/readyz?verbose").text.splitlines()
        document = json.loads(
            client.get("/readyz", headers={"Accept": "application/health+json"}).text
        )
    finally:
        app.close()
    wanted = {name: reason for name, (_, reason) in ODD.items()}
    assert lines[1:-1] == [f"[-]{name} failed: {reason}" for name, reason in wanted.items()]
    assert {name: e[0]["output"] for name, e in document["checks"].items()} == wanted


def test_a_long_reason_is_cut():
    """A list of checks stays readable."""
    with asking({"db": Check(raises(CheckFailed("x" * 1_000_000)), interval=60)}) as monitor:
        until(lambda: only(monitor).observed_at)
        assert len(only(monitor).reason) < 100


class Answering(Check):
    """Notes a status that no upstream has given."""

    status: Any = None

    def __init__(self, says: Any) -> None:
        super().__init__(self._ask, interval=0.01)
        self._says = says

    def _ask(self) -> None:
        self.status = self._says


@pytest.mark.parametrize("says", ["200", 101, 600, 700, -1, 10**9, 2.5, object()])
def test_only_statuses_are_forwarded(says: object):
    """Servers answer 500, or hang up, when they are given another."""
    app = protect(
        wsgi_app,
        Config(health=Health(checks={"up": Answering(says)}, forward_path="/up")),
    )
    try:
        client = Client(app)
        until(lambda: client.get("/readyz").status_code == 200)
        assert client.get("/up").status_code == 503
    finally:
        app.close()


def test_a_kind_of_check_is_no_check():
    """Making one is not asking it, and would pass for ever."""
    with pytest.raises(ConfigError, match=r"health\.checks disk: Check probe must not be a kind"):
        protect(wsgi_app, Config(health=Health(checks={"disk": MemoryCheck})))


@pytest.mark.parametrize(
    ("name", "value"),
    [("interval", "soon"), ("interval", float("nan")), ("timeout", None), ("jitter", "much")],
)
def test_a_probe_that_breaks_its_own_check_is_asked_on(name: str, value: object):
    """What it says of itself is read at the start, and never again."""
    asked = []

    def probe() -> None:
        asked.append(time.monotonic())
        setattr(check, name, value)
        check.critical = False

    check = Check(probe, interval=0.03)
    with asking({"db": check}) as monitor:
        until(lambda: len(asked) > 3)
        assert only(monitor).critical
    assert asked[3] - asked[0] > 0.05


class Held:
    """Something that a probe has open."""


def test_what_a_probe_had_open_is_not_kept():
    """Neither what it returned nor what its traceback holds: its next turn may be an hour away."""
    seen: list[weakref.ref[Held]] = []

    def returns() -> Held:
        held = Held()
        seen.append(weakref.ref(held))
        return held

    def breaks() -> None:
        held = returns()
        raise ValueError(held)

    checks = {"a": Check(returns, interval=60), "b": Check(breaks, interval=60)}
    with asking(checks) as monitor:
        until(lambda: all(result.observed_at for result in monitor.results()))

        def gone() -> bool:
            gc.collect()
            return len(seen) == 2 and not any(ref() for ref in seen)

        until(gone)


def test_a_fault_of_ours_is_logged_once(caplog: pytest.LogCaptureFixture):
    """Not at every interval."""
    check = Check(lambda: True, interval=0.001)
    monitor = Monitor({"db": check})
    del check.probe
    monitor.start()
    until(lambda: only(monitor).reason == "not asked")
    first = only(monitor).observed_at
    until(lambda: (only(monitor).observed_at or 0) > (first or 0) + 0.05)
    monitor.close()
    assert caplog.text.count("could not be asked") == 1


def test_a_check_to_forward_that_does_not_exist_is_an_error():
    """Also where nothing else says that there are checks."""
    with pytest.raises(ConfigError, match=r"forward_check must be one of .* got 'up'"):
        protect(wsgi_app, Config(health=Health(forward_check="up")))


class Unread(str):
    """Text that nobody may take apart."""

    def split(self, *_: Any, **__: Any) -> list[str]:
        raise AssertionError


@pytest.mark.parametrize("peer", ["192.0.2.1", "10.0.0.1"])
def test_what_is_long_and_asks_for_nothing_is_not_taken_apart(peer: str):
    """Whoever is not trusted cannot make us read, nor can anybody whose text holds no request."""
    policy = HealthPolicy(details=Details(("10.0.0.0/8",)))
    accept, query = Unread("a/b," * 16384), Unread("a=b&" * 16384)
    reply = policy.answer("/livez", "GET", query=query, accept=accept, peer=peer)
    assert reply is not None
    assert reply.body == b"ok"
