"""`resilience-mw check` as people run it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from benchmarks.process import ROOT
from resilience_mw.cli import main

from .conftest import APPS


def found(report: dict[str, Any]) -> dict[str, str]:
    return {finding["rule"]: finding["level"] for finding in report["findings"]}


def test_nothing_is_found_with_the_defaults(check):
    """Exit code 0."""
    code, report = check("fastapi")
    assert (code, report["errors"], report["warnings"]) == (0, 0, 0)
    assert report["server"] == "uvicorn"


def test_options_come_with_their_sources(check, monkeypatch):
    """The framework's settings, the environment, flags, and the rest."""
    monkeypatch.setenv("RESILIENCE_DEADLINE_TIMEOUT", "20")
    _, report = check("flask", "--runner-drain-delay", "2")
    options = {option["name"]: (option["value"], option["source"]) for option in report["options"]}
    assert options["limit.max_concurrent_requests"] == (4, "settings")
    assert options["deadline.timeout"] == (20.0, "environment RESILIENCE_DEADLINE_TIMEOUT")
    assert options["runner.drain_delay"] == (2.0, "flag --runner-drain-delay")
    assert options["runner.shutdown_timeout"] == (25.0, "default")


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["--lb-idle", "65"], "keep_alive"),
        (["--runner-keep-alive-timeout", "30"], "keep_alive"),
        (["--grace", "20"], "grace"),
        (["--backpressure-queue-timeout", "30"], "queue_wait"),
        (["--server", "gunicorn", "--threads", "8", "--limit-max-concurrent-requests", "8"], ""),
        (["--server", "gunicorn", "--worker-class", "sync", "--timeout", "30"], "worker_timeout"),
    ],
)
def test_errors_make_the_exit_code_1(check, arguments, rule):
    """Whatever the pair."""
    code, report = check("fastapi", *arguments)
    assert code == 1
    assert found(report).get(rule or "threads") == "error"


def test_warnings_do_not(check, monkeypatch):
    """They may be meant."""
    monkeypatch.setenv("UVICORN_LIMIT_CONCURRENCY", "100")
    code, report = check("fastapi", "--runner-headers-timeout", "10")
    assert code == 0
    assert found(report) == {"headers": "warning", "limit_concurrency": "warning"}


@pytest.mark.parametrize(
    ("app", "paths"),
    [("with_probe", ["/readyz"]), ("protected", ["/readyz"]), ("flask", ["/livez"])],
)
def test_routes_on_probe_paths_are_found(check, app, paths):
    """Also behind a guard; a route that takes anything is none."""
    _, report = check(app)
    shadowed = [f["numbers"]["path"] for f in report["findings"] if f["rule"] == "probe_path"]
    assert shadowed == paths


@pytest.mark.parametrize(
    ("app", "expected"), [("slowed", True), ("inside", False), ("fastapi", False)]
)
def test_a_base_http_middleware_outside_is_found(check, app, expected):
    """One inside of ours is nobody's business, nor is one that the runner will stand outside of."""
    _, report = check(app)
    assert ("base_http_middleware" in found(report)) == expected


@pytest.mark.parametrize("worker", ["sync", "gthread", "gevent", "asgi"])
def test_what_a_worker_class_cannot_do_is_said(check, worker):
    """Never silence; the asgi worker can do everything."""
    from resilience_mw.runner.gunicorn.families import FAMILIES

    family = next(one for one in FAMILIES if one.name == worker)
    _, report = check("flask", "--worker-class", worker)
    said = [f["numbers"]["option"] for f in report["findings"] if f["rule"] == "worker_class"]
    assert said == [option for option, _ in family.cannot]
    assert (worker == "asgi") == (not said)


def test_probes_of_a_sync_worker_wait_unless_they_have_a_port(check):
    """A port of their own is no matter of the worker class."""
    for flags, warned in (([], True), (["--health-port", "9001"], False)):
        _, report = check("flask", "--worker-class", "sync", *flags)
        said = [f["numbers"]["option"] for f in report["findings"] if f["rule"] == "worker_class"]
        assert ("health.ready_path" in said) == warned


def test_a_probe_port_that_the_server_has_is_an_error(check, tmp_path):
    """Wherever the server's port is written."""
    code, report = check("fastapi", "--health-port", "8000")
    assert (code, found(report)["health_port"]) == (1, "error")
    assert "health_port" not in found(check("fastapi", "--health-port", "8000", "--port", "80")[1])
    conf = "from resilience_mw.runner.gunicorn import *\nbind = '127.0.0.1:9001'\n"
    (tmp_path / "gunicorn.conf.py").write_text(conf)
    assert found(check("flask", "--health-port", "9001")[1])["health_port"] == "error"


def test_gunicorns_own_settings_count(check, monkeypatch, tmp_path):
    """Those of its file, of its environment variable, and what our configuration makes of ours."""
    conf = tmp_path / "gunicorn.conf.py"
    conf.write_text("from resilience_mw.runner.gunicorn import *\nthreads = 4\nkeepalive = 20\n")
    code, report = check("flask")
    assert code == 1
    assert found(report)["keep_alive"] == "error"
    assert found(report)["threads"] == "error"
    conf.write_text(
        "from resilience_mw.runner.gunicorn import *\nthreads = 8\n"
        "RESILIENCE_RUNNER_KEEP_ALIVE_TIMEOUT = 90\nRESILIENCE_DEADLINE_TIMEOUT = 40\n"
    )
    code, report = check("flask", "--lb-idle", "89", "--runner-headers-timeout", "91")
    assert code == 0
    assert not {"keep_alive", "worker_timeout"} & set(found(report))
    monkeypatch.setenv("GUNICORN_CMD_ARGS", "--graceful-timeout 10 --timeout 20")
    _, report = check("flask", "--runner-headers-timeout", "91")
    assert found(report)["graceful_timeout"] == "warning"
    assert found(report)["worker_timeout"] == "warning"


def test_a_file_without_us_is_told(check, tmp_path):
    """Gunicorn would run with two seconds of keep-alive."""
    (tmp_path / "plain.py").write_text("threads = 8\n")
    code, report = check("flask", "--config", "plain.py")
    assert code == 1
    message = " ".join(finding["message"] for finding in report["findings"])
    assert "keep-alive (2 s) must be >" in message
    assert "plain.py does not bring resilience_mw.runner.gunicorn in" in message


def test_text_is_for_people(capsys):
    """Options in columns, then the findings, then a count."""
    assert main(["check", f"{APPS}:fastapi", "--lb-idle", "80"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{APPS}:fastapi on uvicorn"
    assert any(line.startswith("runner.drain_delay ") and "3.0" in line for line in lines)
    assert lines[-2].startswith("error: keep-alive (65 s) must be > ")
    assert lines[-1] == "1 errors, 0 warnings"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere:app"], "nowhere:app could not be loaded: ModuleNotFoundError"),
        ([f"{APPS}:nothing"], "could not be loaded: AttributeError"),
        (["nowhere"], 'APP must be "module:attribute"'),
        ([f"{APPS}:flask", "--config", "nowhere.py"], "nowhere.py"),
    ],
)
def test_mistakes_are_one_line(arguments, message, capsys):
    """With an exit code that is not 0."""
    assert main(["check", *arguments]) != 0
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert message in error


def test_it_runs_as_a_program():
    """From a shell, with the exit code."""
    command = [sys.executable, "-m", "resilience_mw", "check", f"{APPS}:extended", "--grace", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "error: runner.drain_delay + runner.shutdown_timeout" in done.stdout
