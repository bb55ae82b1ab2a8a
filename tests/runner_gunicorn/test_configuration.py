"""How the configuration gets in, and whose settings and hooks count."""

from __future__ import annotations

import inspect
import os
import pkgutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gunicorn.config import KNOWN_SETTINGS

import resilience_mw.runner.gunicorn as module
from benchmarks.process import Server
from benchmarks.servers import gunicorn
from benchmarks.talk import get
from resilience_mw import Config, ConfigError, Runner
from resilience_mw.runner.gunicorn import configure
from resilience_mw.runner.gunicorn.compose import ARITY, compose

APP = "tests.runner_gunicorn.apps:wsgi"
SETTINGS = {setting.name: setting for setting in KNOWN_SETTINGS}


def printed(tmp_path: Path, conf: str | None, *args: str, **env: str) -> dict[str, str]:
    """Return Gunicorn's settings as it prints them."""
    where = "python:resilience_mw.runner.gunicorn"
    if conf is not None:
        where = str(tmp_path / "gunicorn.conf.py")
        Path(where).write_text(conf)
    done = subprocess.run(
        [sys.executable, "-m", "gunicorn", "-c", where, "--print-config", *args, APP],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = (line.partition("=") for line in done.stdout.splitlines())
    return {name.strip(): value.strip() for name, _, value in lines}


def test_defaults_are_mapped(tmp_path):
    """Above the balancer, and so that the whole stop fits into thirty seconds."""
    settings = printed(tmp_path, None)
    assert settings["keepalive"] == "65"
    assert settings["graceful_timeout"] == "27"
    assert settings["timeout"] == "35"


def test_the_environment_counts(tmp_path):
    """As everywhere."""
    settings = printed(
        tmp_path,
        None,
        RESILIENCE_RUNNER_KEEP_ALIVE_TIMEOUT="75.5",
        RESILIENCE_RUNNER_SHUTDOWN_TIMEOUT="10",
        RESILIENCE_DEADLINE_TIMEOUT="90",
    )
    assert settings["keepalive"] == "76"
    assert settings["graceful_timeout"] == "12"
    assert settings["timeout"] == "95"


@pytest.mark.parametrize("bring_in", ["from resilience_mw.runner.gunicorn import *", "configure"])
def test_settings_of_the_file_and_of_the_command_line_win(tmp_path, bring_in):
    """Ours are what the user has not said."""
    conf = f"{bring_in}\nkeepalive = 7\n"
    if bring_in == "configure":
        conf = "from resilience_mw.runner.gunicorn import configure\nkeepalive = 7\n"
        conf += "configure(globals())\n"
    settings = printed(tmp_path, conf, "--graceful-timeout", "9")
    assert (settings["keepalive"], settings["graceful_timeout"]) == ("7", "9")
    settings = printed(tmp_path, conf, GUNICORN_CMD_ARGS="--keep-alive 8")
    assert (settings["keepalive"], settings["graceful_timeout"]) == ("8", "27")


def test_the_module_holds_no_other_setting():
    """Gunicorn would take any name of the module that is one of its settings."""
    parts = {part.name for part in pkgutil.iter_modules(module.__path__)}  # once imported
    names = {*vars(module), *parts}
    assert {name for name in names if name in SETTINGS} == {*module.__all__} - {"configure"}


@pytest.mark.parametrize(("name", "arity"), ARITY.items())
def test_hooks_are_composed_in_their_arity(name, arity):
    """Gunicorn counts the arguments; the user's runs first, and what it raises is raised."""
    calls: list[Any] = []
    theirs = _hook(arity, lambda *args: calls.append(("theirs", args)))
    ours = _hook(arity, lambda *args: calls.append(("ours", args)))
    composed = compose(name, theirs, ours)
    assert len(inspect.signature(composed).parameters) == arity
    SETTINGS[name]().set(composed)  # Gunicorn's own check
    args = tuple(range(arity))
    composed(*args)
    assert calls == [("theirs", args), ("ours", args)]
    assert compose(name, None, ours) is ours

    def failing(*args: object) -> None:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        compose(name, _hook(arity, failing), ours)(*args)


def _hook(arity: int, function: Callable[..., Any]) -> Callable[..., Any]:
    hooks: dict[int, Callable[..., Any]] = {
        1: lambda a: function(a),
        2: lambda a, b: function(a, b),
        3: lambda a, b, c: function(a, b, c),
    }
    return hooks[arity]


HOOKS = """
import sys

def say(*words):
    print("hook", *words, file=sys.stderr, flush=True)

def nworkers_changed(server, new, old): say("nworkers_changed", new)
def on_starting(server): say("on_starting")
def when_ready(server): say("when_ready")
def pre_fork(server, worker): say("pre_fork")
def post_fork(server, worker): say("post_fork")
def post_worker_init(worker): say("post_worker_init")
def pre_request(worker, req): say("pre_request", req.path)
def post_request(worker, req, environ, resp): say("post_request", resp.status)
def worker_exit(server, worker): say("worker_exit")
def child_exit(server, worker): say("child_exit")
def on_exit(server): say("on_exit")
"""


@pytest.mark.parametrize("worker", ["sync", "gthread", "gevent"])
def test_hooks_of_the_user_run_and_so_does_ours(
    worker, tmp_path, serve: Callable[[Server], Server]
):
    """All of them, whatever their number of arguments."""
    conf = tmp_path / "gunicorn.conf.py"
    bring_in = "\nfrom resilience_mw.runner.gunicorn import configure\nconfigure(globals())\n"
    conf.write_text(HOOKS + "RESILIENCE_RUNNER_DRAIN_DELAY = 0.2\n" + bring_in)
    server = serve(gunicorn(APP, worker=worker, args=["-c", str(conf)]))
    assert get(server, "/readyz").status == 200
    assert get(server).ok
    assert server.stop() == 0
    output = server.output()
    for hook in (
        *("nworkers_changed 1", "on_starting", "when_ready", "pre_fork", "post_fork"),
        *("post_worker_init", "pre_request /", "post_request 200 OK", "worker_exit"),
        *("child_exit", "on_exit"),
    ):
        assert f"hook {hook}\n" in output
    assert "drain delay 0.2 s" in output
    assert "not ready, still accepting for 0.2 s" in output


def test_hooks_after_an_import_do_not_push_ours_out(tmp_path, serve: Callable[[Server], Server]):
    """One that is left is enough, and it is the one that hardly anybody has."""
    conf = tmp_path / "gunicorn.conf.py"
    hooks = HOOKS.replace("def nworkers_changed", "def unused")
    conf.write_text("from resilience_mw.runner.gunicorn import *\n" + hooks)
    env = {"RESILIENCE_RUNNER_DRAIN_DELAY": "0.3"}
    server = serve(gunicorn(APP, worker="gthread", args=["-c", str(conf)], env=env))
    assert get(server, "/readyz").status == 200
    assert server.stop() == 0
    assert "hook post_worker_init" in server.output()
    assert "not ready, still accepting for 0.3 s" in server.output()


@pytest.mark.parametrize(
    "variables",
    [
        'RESILIENCE = {"runner": {"drain_delay": 0.4}, "health": {"ready_path": "/up"}}',
        'RESILIENCE_RUNNER_DRAIN_DELAY = 0.4\nRESILIENCE_HEALTH_READY_PATH = "/up"',
        "from resilience_mw import *\nRESILIENCE = Config(runner=Runner(drain_delay=0.4), "
        'health=Health(ready_path="/up"))',
    ],
    ids=["mapping", "single", "object"],
)
def test_variables_of_the_file_are_options(variables, tmp_path, serve: Callable[[Server], Server]):
    """Wherever they stand in it."""
    conf = tmp_path / "gunicorn.conf.py"
    conf.write_text(f"from resilience_mw.runner.gunicorn import *\n{variables}\n")
    server = serve(gunicorn(APP, worker="gthread", args=["-c", str(conf)]))
    assert get(server, "/up").status == 200
    assert "drain delay 0.4 s" in server.output()


def test_configure_serves_an_application_of_ones_own():
    """Its options are a mapping, too, and what they say wins."""
    options = configure({"bind": "127.0.0.1:0", "timeout": 99, "RESILIENCE": Config()})
    assert (options["timeout"], options["keepalive"]) == (99, 65)
    assert callable(options["nworkers_changed"])


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"RESILIENCE": {"runner": {"drain": 1}}}, "unknown option runner.drain; did you mean"),
        ({"RESILIENCE_RUNNER_DRAIN": 1}, "unknown variable RESILIENCE_RUNNER_DRAIN; did you mean"),
        (
            {"RESILIENCE_RUNNER_DRAIN_DELAY": -1},
            "RESILIENCE_RUNNER_DRAIN_DELAY: runner.drain_delay must be >= 0, got -1",
        ),
    ],
)
def test_wrong_variables_are_told(variables, message):
    """In one line that names them."""
    with pytest.raises(ConfigError, match=message):
        configure(variables)


def test_a_wrong_variable_behind_the_import_stops_the_start(tmp_path):
    """With one line and a code, before anything listens."""
    conf = tmp_path / "gunicorn.conf.py"
    conf.write_text("from resilience_mw.runner.gunicorn import *\nRESILIENCE_RUNNER_DRAIN = 1\n")
    done = subprocess.run(
        [sys.executable, "-m", "gunicorn", "-c", str(conf), "--bind", "127.0.0.1:0", APP],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 1
    assert "Error: resilience_mw: unknown variable RESILIENCE_RUNNER_DRAIN" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_the_user_sets_for_gunicorn_bounds_the_drain(serve: Callable[[Server], Server]):
    """Workers end two seconds before the master's patience does, whoever set that."""
    args = ["-c", "python:resilience_mw.runner.gunicorn", "--graceful-timeout", "5"]
    server = serve(gunicorn(APP, worker="gthread", args=args))
    assert "graceful_timeout = 5 s as set for Gunicorn" in server.output()
    env = {"RESILIENCE_RUNNER_DRAIN_DELAY": "0"}
    server = serve(gunicorn(APP, worker="gthread", args=args, env=env))
    assert server.stop() == 0
    assert "requests in flight have 3 s" in server.output()
    assert Runner().shutdown_timeout == 25
