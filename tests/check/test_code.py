"""Options that the code of an app gives to what protects it."""

from __future__ import annotations

import gc
import os

import pytest

from resilience_mw import Config, Deadline, Health, Limit, Runner, protect
from resilience_mw.cli import main
from resilience_mw.config import note, noted
from resilience_mw.runner.given import given_in, over
from resilience_mw.runner.wrap import wrap
from resilience_mw.wsgi import BackpressureMiddleware

from .apps import wsgi_app
from .conftest import APPS
from .test_check import found


def options(report):
    """Return value and source by name."""
    return {option["name"]: (option["value"], option["source"]) for option in report["options"]}


def test_what_protect_was_given_comes_from_code(check):
    """And the rest from where it would come anyway."""
    code, report = check("coded", "--grace", "31")
    assert code == 0
    seen = options(report)
    assert seen["limit.max_concurrent_requests"] == (7, "code")
    assert seen["deadline.timeout"] == (9.0, "code")
    assert seen["runner.drain_delay"] == (4.0, "code")
    assert seen["limit.exempt"][1] == "default"


def test_the_environment_is_below_code_and_flags_of_the_runner_above(check, monkeypatch):
    """As they are for the app itself, and for the runner."""
    monkeypatch.setenv("RESILIENCE_DEADLINE_TIMEOUT", "20")
    monkeypatch.setenv("RESILIENCE_RUNNER_SHUTDOWN_TIMEOUT", "21")
    _, report = check("coded", "--runner-drain-delay", "2")
    seen = options(report)
    assert seen["deadline.timeout"] == (9.0, "code")
    assert seen["runner.drain_delay"] == (2.0, "flag --runner-drain-delay")
    assert seen["runner.shutdown_timeout"] == (
        21.0,
        "environment RESILIENCE_RUNNER_SHUTDOWN_TIMEOUT",
    )


@pytest.mark.parametrize("app", ["layered", "merged"])
def test_what_middlewares_were_given_comes_from_code(check, app):
    """Those that Starlette will make, and those that have been merged into one guard."""
    _, report = check(app)
    seen = options(report)
    assert seen["backpressure.queue_size"] == (3, "code")
    assert seen["health.ready_path"] == ("/ready", "code")


def test_code_and_settings_of_an_extension_both_count(check):
    """Flask's."""
    _, report = check("flask_coded")
    seen = options(report)
    assert seen["deadline.timeout"] == (9.0, "code")
    assert seen["limit.max_concurrent_requests"] == (4, "settings")


def test_contradictions_in_code_are_found(check):
    """As if they had been given anywhere else."""
    code, report = check("coded")
    assert code == 1
    assert found(report)["grace"] == "error"


@pytest.mark.parametrize("app", ["coded", "flask_coded"])
def test_flags_are_above_code_and_settings(check, app):
    """For an app that protects itself, too: they are typed for this one run."""
    code, report = check(app, "--limit-max-concurrent-requests", "3", "--grace", "40")
    assert code == 0
    assert "--limit" not in str(report["findings"])
    seen = options(report)
    assert seen["limit.max_concurrent_requests"] == (3, "flag --limit-max-concurrent-requests")
    assert seen["deadline.timeout"] == (9.0, "code")


@pytest.mark.parametrize(
    ("app", "flag", "reaches"),
    [
        ("layered", "--health-port", True),
        ("layered", "--backpressure-queue-size", True),
        ("layered", "--limit-max-concurrent-requests", False),
        ("merged", "--backpressure-queue-size", True),
        ("merged", "--limit-max-concurrent-requests", False),
        ("coded", "--limit-max-concurrent-requests", True),
        ("flask_coded", "--health-port", True),
        ("flask", "--limit-max-concurrent-requests", True),
    ],
)
def test_flags_that_reach_no_guard_are_told(check, app, flag, reaches):
    """An app with some of the middlewares has guards for their options and for no others."""
    _, report = check(app, flag, "3")
    told = [f["message"] for f in report["findings"] if f["rule"] == "without_effect"]
    name = flag[2:].replace("-", ".", 1).replace("-", "_")
    assert any(f"{name} has no effect" in message for message in told) is not reaches


def test_flags_reach_nobody_if_nothing_protects_the_app(check):
    """And `check` leaves nothing of them behind in the environment."""
    before = dict(os.environ)
    _, report = check("fastapi", "--no-runner-protect", "--deadline-timeout", "5")
    assert "runner.protect is false" in str(report["findings"])
    assert dict(os.environ) == before


def test_what_gunicorn_cannot_read_from_code_is_told(check):
    """Its master does not load the app."""
    _, report = check("flask_coded", "--threads", "8")
    assert found(report)["without_effect"] == "warning"
    assert options(report)["runner.drain_delay"] == (3.0, "default")


def test_the_runner_keeps_to_what_code_has_given():
    """Below flags, above the environment."""
    app = protect(wsgi_app, Config(runner=Runner(drain_delay=4, shutdown_timeout=9)))
    wrapped = wrap(app, Config(runner=Runner(drain_delay=1)))
    assert not wrapped.added
    runner = wrapped.config.runner
    assert (runner.drain_delay, runner.shutdown_timeout) == (1.0, 9.0)


def test_only_what_was_given_is_remembered_and_not_for_longer_than_the_guard():
    """Defaults are no news, and guards come and go."""
    guard = BackpressureMiddleware(wsgi_app, queue_size=5)
    assert [part.section for part in noted(guard)] == ["backpressure"]
    assert given_in([guard]) == Config.from_mapping({"backpressure": {"queue_size": 5}})
    assert noted(BackpressureMiddleware(wsgi_app)) == ()
    assert noted(42) == ()

    class Thing:
        """Something that can be collected."""

    thing = Thing()
    part = Limit(exempt=("/a",))
    note(thing, None, part)
    before = len(gc.get_referrers(part))
    del thing
    gc.collect()
    assert len(gc.get_referrers(part)) < before


def test_the_outermost_of_two_counts():
    """Which is the one that a request meets first."""
    app = protect(
        protect(wsgi_app, Config(deadline=Deadline(timeout=9), health=Health(live_path="/live"))),
        Config(deadline=Deadline(timeout=5)),
    )
    given = given_in([app])
    assert given.deadline.timeout == 5.0
    assert given.health.live_path == "/live"


def test_one_config_over_another():
    """Option by option."""
    one = Config(runner=Runner(drain_delay=1))
    other = Config(runner=Runner(drain_delay=2, shutdown_timeout=9), limit=Limit(exempt=("/a",)))
    both = over(one, other)
    assert both.given == {"runner.drain_delay", "runner.shutdown_timeout", "limit.exempt"}
    assert both.runner.drain_delay == 1.0
    assert over(None, other) is other


def test_an_app_that_a_function_makes(check, capsys):
    """As for `run`; without the flag the message says that there is one."""
    _, report = check("make", "--factory", "--limit-max-concurrent-requests", "3")
    assert report["server"] == "uvicorn"
    assert options(report)["deadline.timeout"] == (8.0, "code")
    assert main(["check", f"{APPS}:make"]) == 2
    assert "use --factory" in capsys.readouterr().err
    assert main(["export", "kubernetes", f"{APPS}:make", "--factory"]) == 0
    assert "# runner.drain_delay (6)" in capsys.readouterr().out
