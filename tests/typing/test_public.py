"""The names that others rely on."""

from __future__ import annotations

import importlib
import inspect
import runpy
from pathlib import Path

import pytest

import resilience_mw
from resilience_mw import asgi, wsgi

NAMES = {
    "resilience_mw": [
        "Backpressure",
        "Config",
        "ConfigError",
        "Deadline",
        "Health",
        "Limit",
        "RolloutGuard",
        "RolloutRule",
        "Runner",
        "protect",
        "remaining",
    ],
    "resilience_mw.asgi": [
        "BackpressureMiddleware",
        "ConcurrencyLimitMiddleware",
        "DeadlineMiddleware",
        "Guard",
        "HealthMiddleware",
        "RolloutMiddleware",
    ],
    "resilience_mw.wsgi": [
        "BackpressureMiddleware",
        "ConcurrencyLimitMiddleware",
        "DeadlineMiddleware",
        "Guard",
        "HealthMiddleware",
        "RolloutMiddleware",
    ],
    "resilience_mw.health": [
        "Check",
        "CheckFailed",
        "CheckResult",
        "DiskCheck",
        "DjangoDatabaseCheck",
        "DjangoHealthCheck",
        "MemoryCheck",
        "Monitor",
        "RedisCheck",
        "TcpCheck",
        "UpstreamCheck",
        "from_spec",
    ],
    "resilience_mw.core": [
        "AIMD",
        "SKIP",
        "AdaptiveGate",
        "CheckResult",
        "DeadlinePolicy",
        "DeadlineSnapshot",
        "Decision",
        "Exchange",
        "Gate",
        "GateSnapshot",
        "HealthPolicy",
        "HealthSnapshot",
        "Law",
        "Lifecycle",
        "Policy",
        "Reply",
        "RolloutPolicy",
        "RolloutRule",
        "RolloutSnapshot",
        "Senses",
        "Share",
        "Snapshot",
        "State",
        "Ticket",
        "TicketState",
        "Window",
    ],
}


@pytest.mark.parametrize("module", NAMES)
def test_the_public_names_are_these(module: str):
    """Adding one is a decision, and taking one away needs a warning first."""
    assert list(importlib.import_module(module).__all__) == NAMES[module]


@pytest.mark.parametrize("module", NAMES)
def test_every_public_name_is_there_and_explained(module: str):
    """Classes and functions say what they do."""
    package = importlib.import_module(module)
    for name in package.__all__:
        thing = getattr(package, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert inspect.getdoc(thing), name
            assert inspect.getdoc(thing) != inspect.getdoc(object), name


def test_both_protocols_offer_the_same_middlewares():
    """With the same options under the same names."""
    assert asgi.__all__ == wsgi.__all__
    for name in asgi.__all__:
        there, here = getattr(asgi, name), getattr(wsgi, name)
        parameters = [inspect.signature(thing).parameters for thing in (there, here)]
        assert list(parameters[0]) == list(parameters[1])
        # Where an option is a keyword of both, it has the same annotation and default.
        for key in set(parameters[0]) - {"app"}:
            assert str(parameters[0][key]) == str(parameters[1][key]), (name, key)


def test_the_package_is_marked_as_typed():
    """Type checkers look for the file."""
    assert (Path(resilience_mw.__file__).parent / "py.typed").exists()


def test_what_the_type_checker_sees_also_runs():
    """The examples of correct use are correct."""
    namespace = runpy.run_path(str(Path(__file__).with_name("api.py")))
    assert namespace["guard"].snapshot().limit == 10
