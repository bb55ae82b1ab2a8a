"""The rules of `resilience-mw check`, each at its edge."""

from __future__ import annotations

from dataclasses import replace

import pytest

from resilience_mw import (
    Backpressure,
    Config,
    ConfigError,
    Deadline,
    Health,
    Limit,
    Runner,
    protect,
)
from resilience_mw.health import Check
from resilience_mw.runner.contradictions import Surroundings, contradictions

from .apps import wsgi_app

AROUND = Surroundings()


def rules(config: Config, **around: object) -> dict[str, str]:
    """Return what was found: level by rule."""
    found = contradictions(config, replace(AROUND, **around))  # type: ignore[arg-type]
    return {finding.rule: finding.level for finding in found}


def test_the_defaults_agree():
    """Behind a balancer of sixty seconds, within thirty of grace."""
    assert rules(Config()) == {}


CASES = [
    ("keep_alive", "error", Runner(keep_alive_timeout=60), {}, Runner(keep_alive_timeout=60.5), {}),
    ("keep_alive", "error", Runner(), {"keep_alive": 2}, Runner(), {"keep_alive": 61}),
    ("keep_alive", "error", Runner(), {"lb_idle": 65}, Runner(), {"lb_idle": 64}),
    ("headers", "warning", Runner(headers_timeout=65), {}, Runner(headers_timeout=65.1), {}),
    ("grace", "error", Runner(drain_delay=4), {}, Runner(drain_delay=3), {}),
    ("grace", "error", Runner(), {"grace": 29}, Runner(), {"grace": 30}),
    (
        *("graceful_timeout", "warning", Runner(), {"graceful_timeout": 26}),
        *(Runner(), {"graceful_timeout": 27}),
    ),
    (
        *("queue_wait", "error", Backpressure(queue_timeout=30), {}),
        *(Backpressure(queue_timeout=29), {}),
    ),
    ("queue_wait", "error", Deadline(timeout=5), {}, Deadline(timeout=None), {}),
    (
        *("worker_timeout", "warning", Deadline(timeout=35), {"worker_timeout": 35}),
        *(Deadline(timeout=34), {"worker_timeout": 35}),
    ),
    (
        *("worker_timeout", "error", Deadline(), {"worker_timeout": 30, "one_at_a_time": True}),
        *(Deadline(), {"worker_timeout": 0, "one_at_a_time": True}),
    ),
    (
        *("threads", "error", Limit(max_concurrent_requests=8), {"threads": 8}),
        *(Limit(max_concurrent_requests=7), {"threads": 8}),
    ),
    (
        *("sync_queue", "warning", Backpressure(), {"one_at_a_time": True}),
        *(Backpressure(queue_size=0), {"one_at_a_time": True}),
    ),
    ("limit_concurrency", "warning", Limit(), {"limit_concurrency": 10}, Limit(), {}),
    ("probe_path", "warning", Limit(), {"shadowed": ("/readyz",)}, Limit(), {}),
    ("health_port", "error", Health(port=80), {"ports": (80,)}, Health(port=81), {"ports": (80,)}),
    (
        *("health", "error", Health(forward_path="/status"), {}),
        *(Health(forward_path="/status", checks={"next": "http://127.0.0.1:1/status"}), {}),
    ),
    (
        *("health", "error", Health(checks={"a": "http://127.0.0.1:1/"}, forward_check="b"), {}),
        *(Health(checks={"a": "http://127.0.0.1:1/"}, forward_check="a"), {}),
    ),
    (
        *("health", "error", Health(forward_path="/s", checks={"a": "tcp://127.0.0.1:1"}), {}),
        *(Health(checks={"a": "tcp://127.0.0.1:1"}), {}),
    ),
    (
        *("health_check", "error", Health(checks={"db": "tests.check.broken:check"}), {}),
        *(Health(checks={"db": "tests.check.apps:check"}), {}),
    ),
    (
        *("health_check", "error", Health(checks={"disk": "disk:/?min_free=much"}), {}),
        *(Health(checks={"disk": "disk:/?min_free=0.1"}), {}),
    ),
    (
        *("without_effect", "warning", Limit(), {"without_effect": (("limit.exempt", "no"),)}),
        *(Limit(), {}),
    ),
    ("base_http_middleware", "warning", Limit(), {"outside": ("Timing",)}, Limit(), {}),
    (
        *("worker_class", "warning", Limit(), {"cannot": (("deadline.timeout", "it cannot"),)}),
        *(Limit(), {}),
    ),
]


@pytest.mark.parametrize(
    ("rule", "level", "wrong", "around", "right", "better"),
    CASES,
    ids=[f"{case[0]}-{number}" for number, case in enumerate(CASES)],
)
def test_each_rule_at_its_edge(rule, level, wrong, around, right, better):
    """One step further it is found, one step less it is not."""
    assert rules(Config(**{wrong.section: wrong}), **around).get(rule) == level
    assert rule not in rules(Config(**{right.section: right}), **better)


def test_a_finding_holds_the_two_numbers_and_the_rule():
    """In its message, and apart for whoever reads it by program."""
    (finding,) = contradictions(Config(runner=Runner(keep_alive_timeout=5)), Surroundings())[:1]
    assert finding.numbers == {"runner.keep_alive_timeout": 5.0, "lb_idle": 60.0}
    assert finding.message.startswith(
        "keep-alive (5 s) must be > the balancer's idle timeout (60 s): "
    )


@pytest.mark.parametrize(
    ("enabled", "limit", "expected"), [(False, 0, True), (True, 0, False), (False, 5, False)]
)
def test_readiness_that_waits_for_refusals_needs_somebody_who_refuses(enabled, limit, expected):
    """A limit, or the gate that follows the load."""
    config = Config(
        health=Health(unready_when_shedding=0.5),
        backpressure=Backpressure(enabled=enabled),
        limit=Limit(max_concurrent_requests=limit),
    )
    seen = {finding.rule: finding for finding in contradictions(config, AROUND)}
    assert ("shedding" in seen) == expected
    if expected:
        assert "health.unready_when_shedding (0.5) never acts" in seen["shedding"].message


def test_errors_come_first():
    """Whatever the order in which they are found."""
    config = Config(runner=Runner(headers_timeout=1, drain_delay=60))
    levels = [finding.level for finding in contradictions(config, Surroundings())]
    assert levels == sorted(levels)
    assert set(levels) == {"error", "warning"}


@pytest.mark.parametrize(
    "health",
    [
        Health(forward_path="/status"),
        Health(forward_check="nosuch", checks={"next": "http://127.0.0.1:1/"}),
        Health(forward_path="/status", checks={"next": "tcp://127.0.0.1:1"}),
        Health(checks={"next": "tests.check.broken:check"}),
        Health(checks={"next": "disk:/?min_free=much"}),
        Health(checks={"shedding": "memory:"}, unready_when_shedding=0.5),
    ],
)
def test_what_no_server_would_start_with_is_found_in_the_same_words(health):
    """Whether a protected app or the runner would say them."""
    with pytest.raises(ConfigError) as caught:
        protect(wsgi_app, Config(health=health))
    (finding,) = contradictions(Config(health=health), Surroundings())
    assert (finding.level, finding.message) == ("error", str(caught.value))
    assert "secret" not in finding.message
    assert "\n" not in finding.message


def test_a_timeout_may_be_longer_than_the_interval():
    """A check that has not ended is not asked again, so that nothing piles up."""
    slow = Health(checks={"next": Check(lambda: True, interval=0.05, timeout=2.0)})
    assert contradictions(Config(health=slow), Surroundings()) == []
