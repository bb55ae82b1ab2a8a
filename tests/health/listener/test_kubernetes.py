"""The probes that are written for Kubernetes: valid, and in line with the options."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from benchmarks.process import ROOT
from resilience_mw.cli import main
from resilience_mw.cli.exports.kubernetes import pod
from resilience_mw.config import Config, Health, Runner
from resilience_mw.runner.contradictions import Surroundings, contradictions
from resilience_mw.runner.drain import MARGIN


def exported(config: Config, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the pod's part and its only container."""
    spec = yaml.safe_load("\n".join(pod(config, **{"port": 8000, **options})))
    (container,) = spec["containers"]
    return spec, container


@pytest.mark.parametrize("delay", [0.0, 3.0, 10.5])
@pytest.mark.parametrize("shutdown", [0.0, 25.0, 100.0])
def test_the_stop_has_time(delay, shutdown):
    """The grace period holds all of it, and `check` finds nothing to say about it."""
    config = Config(runner=Runner(drain_delay=delay, shutdown_timeout=shutdown))
    spec, _ = exported(config)
    grace = spec["terminationGracePeriodSeconds"]
    assert isinstance(grace, int)
    assert grace >= delay + shutdown + MARGIN
    found = contradictions(config, Surroundings(grace=grace))
    assert "grace" not in {finding.rule for finding in found}


def test_probes_ask_the_paths_on_the_right_port():
    """The app's own port by default, the other one if there is one."""
    health = Health(live_path="/live", ready_path="/a-b", startup_path="/s:1")
    _, container = exported(Config(health=health), port=8080, container="web")
    assert container["name"] == "web"
    assert container["ports"] == [{"name": "http", "containerPort": 8080}]
    asked = {kind: container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "readiness")}
    asked["liveness"] = container["livenessProbe"]["httpGet"]
    assert asked["startup"] == {"path": "/s:1", "port": "http"}
    assert asked["readiness"] == {"path": "/a-b", "port": "http"}
    assert asked["liveness"] == {"path": "/live", "port": "http"}
    _, apart = exported(Config(health=Health(port=9001)))
    assert apart["ports"][1] == {"name": "health", "containerPort": 9001}
    kinds = ("startup", "readiness", "liveness")
    assert {apart[f"{kind}Probe"]["httpGet"]["port"] for kind in kinds} == {"health"}


def test_a_probe_fits_into_its_period():
    """And readiness turns within the drain delay; apart from the app, patience is not needed."""
    _, inside = exported(Config(), start=90)
    _, apart = exported(Config(health=Health(port=9001)))
    for container in (inside, apart):
        for kind in ("startup", "readiness", "liveness"):
            probe = container[f"{kind}Probe"]
            assert 1 <= probe["timeoutSeconds"] <= probe["periodSeconds"]
        ready = container["readinessProbe"]
        needed = ready["periodSeconds"] * ready["failureThreshold"] + ready["timeoutSeconds"]
        assert needed <= Config().runner.drain_delay
    startup = inside["startupProbe"]
    assert startup["periodSeconds"] * startup["failureThreshold"] == 90
    patience = [c["livenessProbe"]["periodSeconds"] for c in (apart, inside)]
    assert patience == sorted(patience)


def test_the_command_takes_options_like_any_other(capsys: pytest.CaptureFixture[str]):
    """Flags and an app's settings count; a delay that is too short is told in a comment."""
    flags = ["--health-port", "9001", "--health-stuck-after", "0", "--runner-drain-delay", "1"]
    assert main(["export", "kubernetes", *flags, "--start", "5"]) == 0
    out = capsys.readouterr().out
    notes = " ".join(line.strip(" #") for line in out.splitlines())
    container = yaml.safe_load(out)["containers"][0]
    assert container["startupProbe"]["failureThreshold"] == 5
    assert "health.stuck_after is 0" in notes
    assert "runner.drain_delay (1 s) is less than the 2 s" in notes
    assert max(map(len, out.splitlines())) <= 100


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["docker"], "unknown export docker; there are haproxy, kubernetes, nginx"),
        (["kubernets"], "unknown export kubernets; did you mean kubernetes?"),
        (["kubernetes", "nowhere:app"], "nowhere:app could not be loaded: ModuleNotFoundError"),
        (["kubernetes", "--health-port", "x"], "--health-port: health.port"),
    ],
)
def test_wrong_usage_is_one_line(arguments, message, capsys: pytest.CaptureFixture[str]):
    """As with every other command."""
    assert main(["export", *arguments]) != 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"resilience-mw: {message}")
    assert err.count("\n") == 1


def test_the_page_shows_what_the_command_prints(capsys: pytest.CaptureFixture[str]):
    """Byte by byte."""
    page = (ROOT / "docs" / "out-of-band-probes.md").read_text()
    app = "tests.check.apps:fastapi"
    assert main(["export", "kubernetes", app, "--health-port", "9001"]) == 0
    assert page.count(f"```yaml\n{capsys.readouterr().out}```\n") == 1


def test_what_the_app_sets_in_code_is_in_it(capsys: pytest.CaptureFixture[str]):
    """As `check` sees it; without an app a comment says that it is not."""
    assert main(["export", "kubernetes", "tests.check.apps:coded"]) == 0
    out = capsys.readouterr().out
    assert "# runner.drain_delay (4)" in out
    assert "No APP" not in out
    assert main(["export", "kubernetes"]) == 0
    assert "# No APP was named" in capsys.readouterr().out


def test_one_port_for_both_is_an_error(capsys: pytest.CaptureFixture[str]):
    """One of the two could not be opened."""
    assert main(["export", "kubernetes", "--health-port", "8000"]) == 2
    assert "health.port must differ" in capsys.readouterr().err
    assert main(["export", "kubernetes", "--health-port", "8000", "--port", "80"]) == 0
